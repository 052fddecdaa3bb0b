"""Weights undo the rates: estimates from the sample agree with the census, and would not without them."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random  # noqa: TID251 - drawn from a seed
from typing import Any

import pytest

from monitor.intake.intents import IntentClassifier, IntentPolicy
from monitor.sampling.policy import SamplingPolicy
from monitor.sampling.sampler import DECISION_HEADER, Sampler, decode_decision
from tests.confluent import FakeMessage
from tests.events import NOON

CONVERSATIONS = 100_000
COHORTS = ("main", "other", "third")
POLICY = {
    "default_rate": 0.05,
    "rates": [{"match": {"intent": "refunds"}, "rate": 0.2}],
    "priority": {"escalated": 1.0, "thumbs_down": 0.5, "fallback_model": 0.3},
}
WITHIN = 4.0
"""Standard errors; three cohorts with four estimates each leave one in a thousand runs outside by chance."""
TIME = NOON.isoformat()


@dataclass
class Population:
    """All traffic, and the truth about it."""

    values: list[bytes] = field(default_factory=list)
    turns: dict[str, list[float]] = field(default_factory=dict)
    """Scores of the turns of each conversation; the mean of them is the conversation's."""

    @property
    def conversations(self) -> dict[str, float]:
        return {name: sum(scores) / len(scores) for name, scores in self.turns.items()}


@cache
def population() -> Population:
    """Build conversations whose bad answers are complained about, so that a wrong weight shows."""
    dice = Random(7)  # noqa: S311 - a test's dice
    found = Population()
    for number in range(CONVERSATIONS):
        name, refunds = f"c{number}", dice.random() < 0.2
        # Refunds go worse, and are sampled more.
        quality = dice.random() * (0.7 if refunds else 1.0)
        scores = [
            float(1 + int(5 * min(0.999, quality * 0.7 + dice.random() * 0.3)))
            for _ in range(dice.choice((1, 2, 2, 3)))
        ]
        found.turns[name] = scores
        found.values += events_of(name, "refunds" if refunds else "other", scores, dice)
    return found


def events_of(name: str, intent: str, scores: list[float], dice: Random) -> Iterator[bytes]:
    style = dice.choice(("numbered", "numbered", "bare", "whole"))
    said = [complaints(score, dice) for score in scores]
    if style == "whole":
        together = {key: value for one in said for key, value in one.items()}
        yield line(name, intent, "conversation", None, together, scores=scores)
        return
    for index, (score, signals) in enumerate(zip(scores, said, strict=True)):
        later = "thumb" in signals and dice.random() < 0.5
        with_turn = {key: value for key, value in signals.items() if not (later and key == "thumb")}
        yield line(name, intent, "turn", index if style == "numbered" else None, with_turn, scores=[score])
        if later:
            yield line(name, intent, "feedback", None, {"thumb": "down"}, scores=[])


def complaints(score: float, dice: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if dice.random() < (0.0, 0.5, 0.3, 0.1, 0.03, 0.005)[int(score)]:
        found["thumb"] = "down"
    if dice.random() < (0.0, 0.15, 0.08, 0.02, 0.004, 0.001)[int(score)]:
        found["escalated"] = True
    if dice.random() < (0.0, 0.1, 0.1, 0.05, 0.02, 0.02)[int(score)]:
        found["fallback"] = True
    return found


def line(
    name: str, intent: str, kind: str, index: int | None, signals: dict[str, Any], *, scores: list[float]
) -> bytes:
    numbered = f',"turn_index":{index}' if index is not None else ""
    said = f',"signals":{json.dumps(signals)}' if signals else ""
    return (
        f'{{"event_id":"e","conversation_id":"{name}","type":"{kind}","occurred_at":"{TIME}","intent":"{intent}"'
        f'{numbered}{said},"scores":{json.dumps(scores)}}}'
    ).encode()


@dataclass
class Sample:
    """What was kept: each target with its score and the rate that its decision states."""

    conversations: list[tuple[str, float, float]] = field(default_factory=list)
    turns: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    highest: dict[str, float] = field(default_factory=dict)


@cache
def sample(cohort: str) -> Sample:
    truth, found = population(), Sample()
    policy = SamplingPolicy.model_validate({"cohort": cohort} | POLICY)
    whole = truth.conversations
    sampler = Sampler(policy, IntentClassifier(IntentPolicy()), partitions=1, max_bytes=9999, max_ahead=None)
    messages = [FakeMessage(value, offset) for offset, value in enumerate(truth.values)]
    for forward in sampler.take(messages, now=NOON).forward:
        name, event = forward.key.decode(), json.loads(forward.value)
        decision = decode_decision(dict(forward.headers)[DECISION_HEADER])
        if event["scores"] and name not in found.turns and decision.first_rate is not None:
            found.conversations.append((name, whole[name], decision.first_rate))
        found.highest[name] = decision.rate
        if event["scores"]:
            found.turns[name] += [(score, decision.rate) for score in event["scores"]]
    return found


def horvitz_thompson(targets: Sequence[tuple[float, float]], size: int) -> float:
    return sum(score / rate for score, rate in targets) / size


def hajek(targets: Sequence[tuple[float, float]]) -> float:
    return sum(score / rate for score, rate in targets) / sum(1 / rate for _, rate in targets)


def error_of_conversations(sampled: Sample, size: int, centre: float) -> float:
    """Return the standard error of independent draws with known probabilities."""
    spread = ((1 - rate) / rate**2 * (score - centre) ** 2 for _, score, rate in sampled.conversations)
    return math.sqrt(sum(spread)) / size


def error_of_turns(sampled: Sample, size: int, centre: float) -> float:
    """Return the standard error where the turns of a conversation are drawn together."""
    truth, variance = population(), 0.0
    for name, turns in sampled.turns.items():
        estimate = sum((score - centre) / rate for score, rate in turns)
        exact = sum(score - centre for score in truth.turns[name])
        variance += estimate**2 - exact**2 / sampled.highest[name]
    return math.sqrt(variance) / size


@pytest.mark.parametrize("cohort", COHORTS)
def test_weighted_means_of_conversations_agree_with_the_census(cohort: str) -> None:
    """The windows' figures are those of all traffic, whatever was watched more closely."""
    truth, sampled = population().conversations, sample(cohort)
    exact = sum(truth.values()) / len(truth)
    targets = [(score, rate) for _, score, rate in sampled.conversations]

    assert 5_000 < len(targets) < 30_000
    error = error_of_conversations(sampled, len(truth), 0.0)
    assert abs(horvitz_thompson(targets, len(truth)) - exact) < WITHIN * error
    error = error_of_conversations(sampled, len(truth), exact)
    assert error < 0.02
    assert abs(hajek(targets) - exact) < WITHIN * error


@pytest.mark.parametrize("cohort", COHORTS)
def test_weighted_means_of_turns_agree_with_the_census(cohort: str) -> None:
    """Turns promoted in the middle of their conversation have another weight than those before them."""
    truth, sampled = population().turns, sample(cohort)
    scores = [score for turns in truth.values() for score in turns]
    exact = sum(scores) / len(scores)
    targets = [target for turns in sampled.turns.values() for target in turns]

    error = error_of_turns(sampled, len(scores), 0.0)
    assert abs(horvitz_thompson(targets, len(scores)) - exact) < WITHIN * error
    error = error_of_turns(sampled, len(scores), exact)
    assert error < 0.02
    assert abs(hajek(targets) - exact) < WITHIN * error


def test_without_weights_the_same_sample_would_mislead() -> None:
    """So the agreement is the weights' doing: complaints are sampled more, and are about bad answers."""
    sampled = sample("main")
    truth = population().conversations
    exact = sum(truth.values()) / len(truth)

    plain = [(score, 1.0) for _, score, _ in sampled.conversations]
    assert exact - hajek(plain) > 10 * error_of_conversations(sampled, len(truth), exact)

    scores = [score for turns in population().turns.values() for score in turns]
    plain = [(score, 1.0) for turns in sampled.turns.values() for score, _ in turns]
    assert sum(scores) / len(scores) - hajek(plain) > 10 * error_of_turns(sampled, len(scores), exact)


def test_counting_the_partial_conversations_in_would_mislead() -> None:
    """They were promoted because of what happened in them: that is why they stand for nobody."""
    sampled, truth = sample("main"), population().conversations
    exact = sum(truth.values()) / len(truth)
    whole = {name for name, _, _ in sampled.conversations}
    partial = [(truth[name], sampled.highest[name]) for name in sampled.turns if name not in whole]

    assert len(partial) > 500
    both = [(score, rate) for _, score, rate in sampled.conversations] + partial
    assert abs(hajek(both) - exact) > WITHIN * error_of_conversations(sampled, len(truth), exact)
