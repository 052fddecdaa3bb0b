"""Labelled cases with what a judge scored in, the report of a calibration out, with disagreements worst first."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from monitor.intake.event import Value
from monitor.judging.calibration import AGREEMENT_MIN, Answer, Calibration, DimensionCalibration, Share
from monitor.judging.judgment import Judgment, Record
from monitor.judging.rubric import CRITICAL_MAX, PASS_MIN, SCORE_MAX, SCORE_MIN
from monitor.review.agreement import Agreement, Case, agreement, answer
from monitor.review.alternative import EPSILON, Alternative, alternative_test

Score = Annotated[int, Field(ge=SCORE_MIN, le=SCORE_MAX)] | None
"""None: the rater says that the question does not apply."""
GROUPS_MAX = 20
"""Languages and segments shown of one dimension, the largest first."""
ADVICE = (
    "Over 15 % disagreement. Read the disagreements, worst first: where people are right, make the anchors or the "
    "prompt say so; where people differ among themselves, the question is unclear; else take another judge. "
    "Then calibrate on cases that were not looked at."
)


class Labels(BaseModel):
    """What people say of one case, and whom it stands for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    case: str
    labels: Annotated[dict[str, dict[str, Score]], Field(min_length=1)]
    """Scores by rater and dimension."""
    weight: Annotated[float, Field(gt=0)] = 1.0
    """How many cases it stands for: the inverse of the probability with which it was chosen."""
    language: str = "unknown"
    intent: str = "unknown"


class Group(Value):
    """The exact agreement within one language or intent."""

    name: str
    exact: Share
    pass_at_4: Share


class DimensionReport(Value):
    """All that labels say of a judge on one dimension."""

    dimension: str
    judge: Agreement
    people: Agreement
    """The raters among themselves, each pair of them; no case without a second rater."""
    answer: Answer
    needed: int | None = None
    pass_answer: Answer
    pass_needed: int | None = None
    judge_abstained: int = 0
    """Cases that people scored and the judge did not."""
    people_abstained: int = 0
    """Cases that the judge scored and no rater did."""
    groups: tuple[Group, ...] = ()
    alternative: Alternative


class Disagreement(Value):
    """One case on which judge and people differ, for review."""

    case: str
    dimension: str
    judge: int
    people: dict[str, int]
    off: float
    """Distance of the judge from the raters' mean, in points."""
    critical_missed: bool
    """A rater saw a critical failure and the judge none."""
    reason: str
    kind: str | None = None


class Report(Value):
    """The result of one calibration."""

    cases: int
    failed: int
    """Cases that the judge could not judge; they count in no agreement."""
    raters: tuple[str, ...]
    dimensions: tuple[DimensionReport, ...]
    disagreements: tuple[Disagreement, ...]

    @property
    def advice(self) -> str | None:
        """Return what to do, None where no dimension lies below what is asked for."""
        low = any(
            d.judge.exact.value is not None and d.judge.exact.value < AGREEMENT_MIN for d in self.dimensions
        )
        return ADVICE if low else None


def report_on(
    labelled: Sequence[Labels], records: Mapping[str, Record], *, epsilon: float = EPSILON
) -> Report:
    """Compare the judge's records, by case, with what people said of the same cases."""
    judged = {case: record for case, record in records.items() if isinstance(record, Judgment)}
    names = sorted({name for one in labelled for scores in one.labels.values() for name in scores})
    raters = sorted({rater for one in labelled for rater in one.labels})
    found = [_dimension(name, labelled, judged, epsilon) for name in names]
    disagreements = [each for name in names for each in _disagreements(name, labelled, judged)]
    disagreements.sort(key=lambda one: (not one.critical_missed, -one.off, one.case, one.dimension))
    return Report(
        cases=len(labelled),
        failed=sum(one.case not in judged for one in labelled),
        raters=tuple(raters),
        dimensions=tuple(found),
        disagreements=tuple(disagreements),
    )


def calibration_of(report: Report, record: Record, *, at: datetime) -> Calibration:
    """Return what is kept of a report and quoted in alerts; any record names the judge and the rubric."""
    return Calibration(
        judge_version=record.judge.version,
        rubric_version=record.rubric_version,
        judge=record.judge.model_asked,
        calibrated_at=at,
        raters=len(report.raters),
        cases=report.cases - report.failed,
        dimensions=tuple(
            DimensionCalibration(
                dimension=one.dimension,
                exact=one.judge.exact,
                pass_at_4=one.judge.pass_at_4,
                human_exact=one.people.exact,
                human_pass_at_4=one.people.pass_at_4,
                answer=one.answer,
                needed=one.needed,
            )
            for one in report.dimensions
        ),
    )


def _dimension(
    name: str, labelled: Sequence[Labels], judged: Mapping[str, Judgment], epsilon: float
) -> DimensionReport:
    scores = {case: _score(record, name) for case, record in judged.items()}
    people = {one.case: _people(one, name) for one in labelled}
    beside = [_beside(scores.get(one.case), people[one.case], one.weight) for one in labelled]
    whole = agreement(beside)
    said, needed = answer(whole.exact)
    pass_said, pass_needed = answer(whole.pass_at_4)
    compared = [one for one in labelled if one.case in judged]
    return DimensionReport(
        dimension=name,
        judge=whole,
        people=agreement([_among(people[one.case], one.weight) for one in labelled]),
        answer=said,
        needed=needed,
        pass_answer=pass_said,
        pass_needed=pass_needed,
        judge_abstained=sum(scores[one.case] is None and bool(people[one.case]) for one in compared),
        people_abstained=sum(scores[one.case] is not None and not people[one.case] for one in compared),
        groups=(
            *_groups(labelled, beside, lambda one: f"language={one.language}"),
            *_groups(labelled, beside, lambda one: f"intent={one.intent}"),
        ),
        alternative=alternative_test(
            {case: score for case, score in scores.items() if score is not None}, people, epsilon=epsilon
        ),
    )


def _people(one: Labels, name: str) -> dict[str, int]:
    told = {rater: scores.get(name) for rater, scores in sorted(one.labels.items())}
    return {rater: score for rater, score in told.items() if score is not None}


def _score(record: Judgment, name: str) -> int | None:
    return next((score.score for score in record.scores if score.dimension == name), None)


def _beside(score: int | None, people: Mapping[str, int], weight: float) -> Case:
    pairs = () if score is None else tuple((score, other) for other in people.values())
    return Case(pairs, weight)


def _among(people: Mapping[str, int], weight: float) -> Case:
    told = [people[rater] for rater in sorted(people)]
    return Case(tuple((one, other) for place, one in enumerate(told) for other in told[place + 1 :]), weight)


def _groups(labelled: Sequence[Labels], beside: Sequence[Case], name: Callable[[Labels], str]) -> list[Group]:
    cases: dict[str, list[Case]] = {}
    for one, case in zip(labelled, beside, strict=True):
        cases.setdefault(name(one), []).append(case)
    if len(cases) < 2:  # noqa: PLR2004 - one group is the whole
        return []
    found = []
    for group, own in sorted(cases.items(), key=lambda one: (-len(one[1]), one[0]))[:GROUPS_MAX]:
        told = agreement(own)
        found.append(Group(name=group, exact=told.exact, pass_at_4=told.pass_at_4))
    return found


def _disagreements(
    name: str, labelled: Sequence[Labels], judged: Mapping[str, Judgment]
) -> list[Disagreement]:
    found = []
    for one in labelled:
        people = _people(one, name)
        record = judged.get(one.case)
        score = next((s for s in record.scores if s.dimension == name), None) if record else None
        if score is None or score.score is None or not people:
            continue
        off = abs(score.score - sum(people.values()) / len(people))
        flips = any((score.score >= PASS_MIN) != (other >= PASS_MIN) for other in people.values())
        if off >= 1 or flips:
            found.append(
                Disagreement(
                    case=one.case,
                    dimension=name,
                    judge=score.score,
                    people=people,
                    off=off,
                    critical_missed=score.score > CRITICAL_MAX >= min(people.values()),
                    reason=score.reason,
                    kind=score.kind,
                )
            )
    return found
