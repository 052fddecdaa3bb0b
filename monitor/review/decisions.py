"""Decided alerts in, labels of a judge's scores out: what people on call upheld, and what they disputed.

A decision is one word for all cases that its alert showed, and these are the worst. So it is counted beside the
agreement with raters and never mixed into it, and it names no score that the case should have had.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from monitor.alerting.alert import Alert
from monitor.alerting.decision import DecidedScore, Verdict
from monitor.intake.event import Moment
from monitor.judging.calibration import Calibration, DecidedScores, Share
from monitor.review.agreement import wilson

UPHELD: Mapping[Verdict, bool] = {Verdict.REGRESSION: True, Verdict.JUDGE_ERROR: False}
"""What a verdict says of the judge's scores; of the other verdicts none says anything of them."""


class DecisionLabel(DecidedScore):
    """What one decision says of one score."""

    upheld: bool
    """False: disputed."""
    alert: str
    by: str
    at: Moment
    note: str = ""


def labels_of(alerts: Iterable[Alert]) -> tuple[DecisionLabel, ...]:
    """Return one label for each score that decided alerts showed; of several words on it the last counts."""
    found: dict[tuple[str, str], DecisionLabel] = {}
    for alert in alerts:
        for decision in alert.decisions:
            upheld = UPHELD.get(decision.verdict)
            if upheld is None:
                continue
            for score in decision.scores:
                label = DecisionLabel(
                    **dict(score),
                    upheld=upheld,
                    alert=alert.fingerprint,
                    by=decision.by,
                    at=decision.at,
                    note=decision.text,
                )
                key = (score.judgment_id, score.dimension)
                if key not in found or found[key].at < label.at:
                    found[key] = label
    return tuple(found[key] for key in sorted(found))


def decided_by_judge(labels: Sequence[DecisionLabel]) -> dict[tuple[str, str], tuple[DecidedScores, ...]]:
    """Return, by judge and rubric version, how many of each dimension's scores people upheld."""
    counts: dict[tuple[str, str], dict[str, list[bool]]] = {}
    for label in labels:
        key = (label.judge_version, label.rubric_version)
        counts.setdefault(key, {}).setdefault(label.dimension, []).append(label.upheld)
    return {
        key: tuple(
            DecidedScores(dimension=dimension, upheld=_share(words))
            for dimension, words in sorted(dimensions.items())
        )
        for key, dimensions in sorted(counts.items())
    }


def with_decisions(
    known: Calibration | None,
    decided: tuple[DecidedScores, ...],
    *,
    judge_version: str,
    rubric_version: str,
    at: datetime,
) -> Calibration:
    """Return what is kept of a judge with the decisions in it; what raters said stays."""
    if known is None:
        known = Calibration(
            judge_version=judge_version,
            rubric_version=rubric_version,
            judge="",
            calibrated_at=at,
            raters=0,
            cases=0,
            dimensions=(),
        )
    return Calibration.model_validate(dict(known) | {"decided": decided})


def _share(words: Sequence[bool]) -> Share:
    value = sum(words) / len(words)
    low, high = wilson(value, len(words))
    return Share(value=value, low=low, high=high, n=len(words))
