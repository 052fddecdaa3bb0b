"""`monitor explain ID`: what became of one conversation, and why."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated

import typer
from pydantic import Field
from rich.console import Console
from rich.table import Table

from monitor.alerting.forgetting import cites
from monitor.alerting.render import title
from monitor.cli.asking import JsonOption, NameOption, looking, moment, printed, screen
from monitor.conversations.assembly import conversation
from monitor.conversations.store import Explained
from monitor.intake.event import Moment, Value
from monitor.judging.judgment import JudgeFailure, Judgment, JudgmentRecord, Record
from monitor.judging.shadow import on_trial
from monitor.sampling.decision import position, salt
from monitor.sampling.policy import SamplingPolicy


class Rule(Value):
    """One sampling rule and what it would say of this id."""

    rule: str
    rate: float
    keeps: bool


class Sampling(Value):
    """Whether a conversation is in the sample, and by which rule."""

    kept: bool
    position: float
    """Where its id stands in [0, 1): every rate above it keeps the conversation."""
    cohort: str
    rule: str | None = None
    rate: float | None = None
    own_rate: float | None = None
    """The rate of the whole conversation; None when it was promoted in its middle."""
    rules: tuple[Rule, ...]


class EventLine(Value):
    """One event and its outcome."""

    event_id: str
    kind: str
    outcome: str
    source: str


class CitedBy(Value):
    """One alert that shows a case of the conversation."""

    fingerprint: str
    state: str
    title: str


class Explanation(Value):
    """What `monitor explain --json` prints."""

    conversation_id: str
    sampling: Sampling
    events: tuple[EventLine, ...] = ()
    duplicates: dict[str, str] = Field(default_factory=dict)
    """Event id by source position, of what came twice."""
    revision: int | None = None
    closed_revision: int | None = None
    waiting_until: Moment | None = None
    end_reason: str | None = None
    partial: bool | None = None
    """None when its texts, and with them its turns, are no longer kept."""
    missing_turns: tuple[int, ...] = ()
    judgments: tuple[JudgmentRecord, ...] = ()
    alerts: tuple[CitedBy, ...] = ()


def explain(
    conversation_id: Annotated[str, typer.Argument(metavar="ID", help="The conversation's id.")],
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what became of one conversation and why: sampled or not, its events, judgments and alerts."""
    with looking(name) as (_, policy, looks):
        known = looks.explain(conversation_id)
        alerts = tuple(
            CitedBy(fingerprint=alert.fingerprint, state=alert.state, title=title(alert))
            for alert in looks.alerts()
            if cites(alert, conversation_id)
        )
    found = explanation(conversation_id, known, policy.sampling, alerts)
    if as_json:
        printed(found.model_dump_json(indent=2))
    else:
        show(found, screen())


def explanation(
    conversation_id: str, known: Explained[Record], policy: SamplingPolicy, alerts: Sequence[CitedBy] = ()
) -> Explanation:
    """Put together what the store knows and what the policy decides."""
    stored = known.stored
    taken = {one.event_id: one for one in stored.taken} if stored else {}
    # Without its texts an event's time is not known; its id often says the order.
    ordered = sorted(
        known.outcomes, key=lambda one: (taken[one].occurred_at.timestamp() if one in taken else 0, one)
    )
    whole = conversation(stored) if stored is not None and stored.taken else None
    return Explanation(
        conversation_id=conversation_id,
        sampling=sampling(conversation_id, known, policy),
        events=tuple(
            EventLine(
                event_id=event_id,
                kind=taken[event_id].kind if event_id in taken else "-",
                outcome=known.outcomes[event_id][1],
                source=known.outcomes[event_id][0],
            )
            for event_id in ordered
        ),
        duplicates=dict(known.duplicates),
        revision=stored.revision if stored else None,
        closed_revision=stored.closed_revision if stored else None,
        waiting_until=known.due,
        end_reason=known.end_reason,
        partial=whole.partial if whole else None,
        missing_turns=whole.missing_turns if whole else (),
        judgments=tuple(known.records),
        alerts=tuple(alerts),
    )


def sampling(conversation_id: str, known: Explained[Record], policy: SamplingPolicy) -> Sampling:
    """Return the decision that was made, or what the policy decides for an id of which nothing is stored."""
    where = position(conversation_id, salt(policy.cohort))
    rules = tuple(Rule(rule=rule, rate=rate, keeps=where < rate) for rule, rate in _rates(policy))
    taken = known.stored.taken if known.stored else ()
    last = max(taken, key=lambda one: (one.rate, one.occurred_at), default=None)
    opening = known.stored.opening if known.stored else None
    return Sampling(
        kept=known.stored is not None,
        position=where,
        cohort=policy.cohort,
        rule=last.decision_rule if last else None,
        rate=last.rate if last else None,
        own_rate=opening.first_rate if opening else None,
        rules=rules,
    )


def show(found: Explanation, console: Console) -> None:
    """Print an explanation for people."""
    for line in (*_sampling_lines(found), *_life_lines(found)):
        console.print(line, markup=False, highlight=False)
    if found.events:
        console.print(_events(found.events))
    for source, event_id in sorted(found.duplicates.items()):
        console.print(f"Duplicate of {event_id} at {source}: counted, without effect", markup=False)
    for record in found.judgments:
        _show_record(record, console)
    for alert in found.alerts:
        console.print(f"Cited by alert {alert.fingerprint} ({alert.state}): {alert.title}", markup=False)


def _rates(policy: SamplingPolicy) -> Iterable[tuple[str, float]]:
    yield "base:default", policy.default_rate
    yield from ((row.rule, row.rate) for row in policy.rates)
    rules = policy.priority
    for name in ("escalated", "thumbs_down", "fallback_model"):
        rate = getattr(rules, name)
        if rate is not None:
            yield f"priority:{name}", rate
    if rules.new_prompt_hash is not None:
        yield "priority:new_prompt_hash", rules.new_prompt_hash.rate


def _sampling_lines(found: Explanation) -> Iterable[str]:
    one = found.sampling
    stands = f"its id stands at {one.position:.6f} in [0, 1) of the cohort {one.cohort}"
    if one.rule is not None:
        yield f"Conversation {found.conversation_id} is in the sample by {one.rule}, rate {one.rate:g}: {stands}."
        return
    if one.kept:
        yield f"Conversation {found.conversation_id} is in the sample: {stands}. Its texts are no longer kept."
        return
    yield f"Of conversation {found.conversation_id} nothing is stored: {stands}."
    yield "A rate above that keeps it. By the sampling policy as it is now:"
    for rule in one.rules:
        yield f"  {rule.rule}, rate {rule.rate:g}: {'would keep it' if rule.keeps else 'leaves it out'}"
    if any(rule.keeps and rule.rule.startswith("base:") for rule in one.rules):
        yield (
            "If the rule that keeps it applied, its events have not come yet, are on their way, or came longer "
            "ago than conversations.keep_records_days."
        )


def _life_lines(found: Explanation) -> Iterable[str]:
    if found.revision is None:
        return
    if found.waiting_until is not None:
        until = moment(found.waiting_until)
        yield f"Revision {found.revision} is open: waiting until {until} for its end or more turns."
    elif found.end_reason:
        yield f"Revision {found.closed_revision} is over, by {found.end_reason}."
    if found.partial is None:
        yield "Its turns are no longer kept: conversations.keep_texts_hours have passed, or it was forgotten."
    elif found.partial:
        yield "It is partial: promoted after its beginning, so it is judged turn by turn and stays out of the series."
    if found.missing_turns:
        yield f"Missing turns: {', '.join(map(str, found.missing_turns))}."


def _events(events: Sequence[EventLine]) -> Table:
    table = Table()
    for column in ("event", "kind", "outcome", "source"):
        table.add_column(column, overflow="fold")
    for event in events:
        table.add_row(event.event_id, event.kind, event.outcome, event.source)
    return table


def _show_record(record: Judgment | JudgeFailure, console: Console) -> None:
    target = record.target
    what = f"turn {target.turn_event_id}" if target.turn_event_id else "the conversation"
    when: datetime = record.judged_at
    by = f"{record.judge.backend} {record.judge.version}{', on trial' if on_trial(record) else ''}"
    head = f"Revision {target.revision}, {what}: {record.outcome} at {moment(when)} by {by}"
    console.print(head, markup=False, highlight=False)
    if isinstance(record, JudgeFailure):
        console.print(f"  {record.kind}: {record.reason}", markup=False, highlight=False)
        return
    for score in record.scores:
        said = "abstained" if score.score is None else f"{score.score}{' CRITICAL' if score.critical else ''}"
        console.print(f"  {score.dimension} {said}: {score.reason}", markup=False, highlight=False)
