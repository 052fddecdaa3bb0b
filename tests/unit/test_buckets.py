"""A judgment's contribution to its bucket."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from monitor.intake.event import Environment
from monitor.intake.moments import floor
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import (
    CRITICAL,
    FAILED,
    OVERALL,
    Cell,
    Scope,
    contribution,
    entry_key,
    is_late,
    name_of,
    rank,
    readable,
)
from monitor.windows.case import cases_of
from monitor.windows.policy import WindowPolicy
from tests.judgments import MINUTE, NOON, a_failure, a_judgment

POLICY = WindowPolicy(strata=("intent", "channel"))


def cells(record: object, policy: WindowPolicy = POLICY) -> set[Cell]:
    added = contribution(record, policy)  # type: ignore[arg-type]
    assert added is not None
    found = list(added.cells)
    assert len(found) == len(set(found))
    return set(found)


def test_a_score_counts_overall_and_in_each_segment() -> None:
    """Nothing else may be counted: a segment that is written twice makes a wrong share."""
    safety = {c for c in cells(a_judgment(scores={"safety": 2}, rate=0.05)) if c.dimension == "safety"}

    assert safety == {
        Cell("safety", segment, "returns,unknown", "2", "0.05")
        for segment in (OVERALL, "intent=returns", "prompt_hash=aa11")
    }


def test_an_abstention_is_no_score() -> None:
    """Not applicable is never zero."""
    marks = {c.mark for c in cells(a_judgment(scores={"safety": None})) if c.dimension == "safety"}

    assert marks == {"a"}


@pytest.mark.parametrize(("score", "mark"), [(1, "1"), (2, "1"), (3, "0"), (None, "0")])
def test_a_unit_is_critical_if_any_dimension_is(score: int | None, mark: str) -> None:
    """S2: critical is any dimension at 1 or 2, computed from the scores."""
    found = {c.mark for c in cells(a_judgment(scores={"actionability": score})) if c.dimension == CRITICAL}

    assert found == {mark}


def test_a_failure_is_missing_from_the_whole_unit_and_from_no_score() -> None:
    """A judge that fails must neither lower nor raise a mean."""
    assert {(c.dimension, c.mark) for c in cells(a_failure())} == {(CRITICAL, FAILED)}


def test_a_partial_target_contributes_nothing() -> None:
    """It has no rate and so stands for nobody."""
    assert contribution(a_judgment(rate=None), POLICY) is None
    assert contribution(a_failure(rate=None), POLICY) is None


def test_a_bucket_begins_at_a_quarter_in_utc() -> None:
    """India's clock is off by half an hour, Nepal's by three quarters; buckets are not."""
    nepal = timezone(timedelta(hours=5, minutes=45))
    moment = datetime(2026, 3, 10, 17, 59, 59, 999_999, tzinfo=nepal)

    assert floor(moment, minutes=15) == datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
    assert floor(NOON, minutes=15) == NOON
    assert floor(NOON - timedelta(microseconds=1), minutes=15) == NOON - 15 * MINUTE


def test_buckets_must_divide_the_hour() -> None:
    """Else bucket starts would wander from hour to hour."""
    with pytest.raises(ValidationError, match="divide 60"):
        WindowPolicy(bucket_minutes=25)


def test_strata_are_attributes_of_the_first_turn_only() -> None:
    """Outcomes in the strata hide a regression (DETECTION, correction 1): the type does not allow them."""
    with pytest.raises(ValidationError):
        WindowPolicy(strata=("thumb",))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", ["a|b", "a,b", "a=b", "a;b", "a:b", "100%", "*", "line\nbreak", "größe 日本"]
)
def test_a_name_holds_no_separator_and_reads_back(value: str) -> None:
    """An intent is whatever people send."""
    name = name_of(value)

    assert not set(name) & set("|,=;:*\n\x1d\x1e\x1f")
    assert readable(name) == value


def test_long_values_are_cut_and_stay_apart() -> None:
    """The size of a field is bounded, and two values that begin alike are still two."""
    one, other = name_of("x" * 128), name_of("x" * 127 + "y")

    assert one != other
    assert len(one) == len(other) == 64


def test_what_is_unknown_is_a_value_of_its_own() -> None:
    """A missing prompt hash is a segment, not a hole in the sum."""
    assert "prompt_hash=unknown" in {c.segment for c in cells(a_judgment(prompt_hash=None))}


def test_series_never_mix_versions_environments_or_targets() -> None:
    """A fallback judge's scores are not comparable with the first one's."""
    scopes = {
        Scope.of(record).id
        for record in (
            a_judgment(),
            a_judgment(judge_version="j2"),
            a_judgment(environment=Environment.STAGING),
            a_judgment(assistant="other"),
            a_judgment(kind=TargetKind.TURN),
        )
    }

    assert len(scopes) == 5


def test_revisions_share_one_entry_and_the_later_judgment_ranks_highest() -> None:
    """One current result per target: this order decides which."""
    first, second = a_judgment(), a_judgment(revision=2)
    keys = {entry_key(r.target, rubric_version="r1", judge_version="j1") for r in (first, second)}

    assert len(keys) == 1
    assert rank(a_failure()) < rank(first) < rank(a_failure(revision=2)) < rank(second)


def test_late_is_decided_by_the_clock_that_is_given() -> None:
    """A replay of last year is on time by its own clock."""
    assert is_late(NOON - timedelta(days=9, minutes=15), now=NOON, policy=POLICY)
    assert not is_late(NOON - timedelta(days=9), now=NOON, policy=POLICY)


def test_cases_are_what_does_not_pass_and_are_bounded() -> None:
    """Evidence keeps words; it must not keep all of them."""
    judgment = a_judgment(scores={"safety": 3, "actionability": 4, "policy_adherence": None})

    assert [(case.dimension, case.score) for case in cases_of(judgment)] == [("safety", 3)]
