"""What a finding says of a change: which attribute of the traffic explains it, and that the parts add up."""

import pytest

from monitor.detection.finding import Finding, FindingKind, Severity
from monitor.detection.policy import DetectionPolicy
from monitor.detection.sequential import SequentialDetector
from monitor.detection.sustained import sustained_finding
from tests.drawn import MONDAY, QUARTER, SCOPE, Drawn
from tests.judgments import HOUR
from tests.sustained import pinned_before

STRATA = ("intent", "channel", "language", "tenant")
BASELINE = pinned_before("{}", 7).baseline


def told(key: tuple[str, str], **change: object) -> Finding:
    drawn = Drawn({"changes": [{"hours": [0, 12]} | change]})
    detector = SequentialDetector(DetectionPolicy(), 15)
    detector.update(
        {MONDAY + n * QUARTER: drawn.bucket(MONDAY + n * QUARTER) for n in range(48)}, start=MONDAY
    )
    reading = detector.read(BASELINE, {}, end=MONDAY + 12 * HOUR, shifts={})[key]
    return sustained_finding(reading, scope=SCOPE, baseline=BASELINE, severity=Severity.TICKET, strata=STRATA)


def test_the_group_that_fell_stands_first_and_the_parts_are_the_whole() -> None:
    """A fall of one intent while the mix moves: both are told, and nothing is left over."""
    mix = {"billing": 0.3, "shipping": 0.5, "returns": 0.2}
    known = told(("factual_correctness", "*"), fall=1.0, intent="returns", intents=mix).sustained

    assert known is not None
    assert known.parts[0].group == "intent=returns"
    assert sum(part.within + part.mix for part in known.parts) == pytest.approx(known.raw, abs=1e-12)
    assert known.parts[0].mean == pytest.approx(3.5, abs=0.2)
    assert known.effect == pytest.approx(-0.2, abs=0.03)


def test_a_segment_is_compared_with_its_own_strata() -> None:
    """Otherwise the intents that it does not hold would stand as a change of mix."""
    known = told(("factual_correctness", "intent=returns"), fall=1.0, intent="returns").sustained

    assert known is not None
    assert [part.group for part in known.parts] == ["intent=returns"]
    assert known.parts[0].mix == pytest.approx(0)
    assert known.raw == pytest.approx(-1.0, abs=0.15)


def test_more_critical_failures_are_told_as_a_share_with_the_worst_group_first() -> None:
    found = told(("critical", "*"), critical=0.05)

    assert found.kind is FindingKind.CRITICAL_RATE
    assert found.sustained is not None
    assert found.sustained.effect == pytest.approx(0.0485, abs=0.015)
    assert found.sustained.parts[0].within > 0
    assert sum(part.within + part.mix for part in found.sustained.parts) == pytest.approx(found.sustained.raw)
    assert "fail critically since 2026-03-09 00:" in found.reason


def test_its_labels_hold_no_value_that_changes() -> None:
    """The fingerprint is the alert's identity for as long as it lives."""
    first, second = (told(("factual_correctness", "*"), fall=points) for points in (0.3, 0.6))

    assert first.fingerprint == second.fingerprint
    assert first.reason != second.reason
