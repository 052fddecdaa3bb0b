"""How fast the budget of failures burns: the figures of the SRE workbook, on scores of 4 and 5."""

from datetime import datetime, timedelta

import pytest
from pydantic import ValidationError

from monitor.adapters.memory_alerts import MemoryAlertStore
from monitor.adapters.memory_windows import MemoryWindowStore
from monitor.alerting.alert import Alert, AlertState
from monitor.alerting.evaluation import evaluate
from monitor.detection.exception import GateException
from monitor.detection.finding import Finding, FindingKind, Outcome, Severity
from monitor.detection.gates import GatePolicy
from monitor.detection.slo import DEFAULT_BURNS, Burn, SloPolicy, budget_left, burn_rate, evaluate_slos
from monitor.windows.bucket import Scope
from monitor.windows.policy import WindowPolicy
from monitor.windows.window import WindowStats
from tests.judgments import HOUR, MINUTE, NOON, a_judgment
from tests.unit.test_gates import stats

SCOPE = Scope.of(a_judgment())
POLICY = SloPolicy(objectives={"safety": 0.99})
QUARTER = 15 * MINUTE


def series(passing: float | None, n: int = 1000, failed: int = 0) -> WindowStats:
    [one] = stats(passing=passing, n=n, failed=failed).values()
    return one


def findings(
    shares: dict[int, WindowStats],
    policy: SloPolicy = POLICY,
    exceptions: tuple[GateException, ...] = (),
    *,
    hold: bool = True,
) -> dict[str, Finding]:
    """Evaluate windows given by their minutes; one that is not given is without fault."""

    def over(length: timedelta) -> WindowStats:
        return shares.get(round(length / MINUTE), series(1.0))

    found = evaluate_slos(
        {"safety": over},
        policy,
        scope=SCOPE,
        now=NOON,
        coverage_min=0.8,
        exceptions=exceptions,
        hold=hold,
    )
    return {one.labels["burn"]: one for one in found}


def test_burn_one_uses_up_the_budget_in_the_period() -> None:
    """Twice the allowed failures burn at two; what is left after a period at one is nothing."""
    assert burn_rate(series(0.99), 0.99) == pytest.approx(1)
    assert burn_rate(series(0.98), 0.99) == pytest.approx(2)
    assert burn_rate(series(1.0), 0.99) == 0
    assert burn_rate(series(None), 0.99) is None
    assert budget_left(series(0.99), 0.99) == pytest.approx(0)
    assert budget_left(series(0.995), 0.99) == pytest.approx(0.5)
    assert budget_left(series(0.97), 0.99) == pytest.approx(-2)


def test_the_windows_and_factors_are_the_workbooks() -> None:
    """14.4 and 6 page, 1 is a ticket; five minutes are a bucket here."""
    told = [(burn.name, burn.short_minutes, burn.factor, burn.severity) for burn in DEFAULT_BURNS]

    assert told == [
        ("1h", 15, 14.4, Severity.PAGE),
        ("6h", 30, 6, Severity.PAGE),
        ("3d", 360, 1, Severity.TICKET),
    ]


def test_a_burn_must_show_in_both_windows() -> None:
    """The long one says that it matters, the short one that it goes on."""
    bad = series(0.8)

    assert findings({60: bad, 15: bad})["1h"].outcome is Outcome.FAIL
    assert findings({60: bad})["1h"].outcome is Outcome.PASS
    assert findings({15: bad})["1h"].outcome is Outcome.PASS
    assert findings({60: bad, 15: bad})["6h"].outcome is Outcome.PASS


def test_it_fires_from_its_factor_on() -> None:
    """A burn of 6 over six hours pages, one of 5.9 does not."""
    at, below = series(1 - 0.0601), series(1 - 0.059)

    assert findings({360: at, 30: at})["6h"].outcome is Outcome.FAIL
    assert findings({360: below, 30: below})["6h"].outcome is Outcome.PASS


def test_too_little_says_nothing() -> None:
    """Two bad of three at night are no page, and an ailing judge is no verdict."""
    bad = series(0.1)

    assert findings({60: series(0.1, n=49), 15: bad})["1h"].outcome is Outcome.NO_DATA
    assert findings({60: bad, 15: series(0.1, n=9)})["1h"].outcome is Outcome.NO_DATA
    assert findings({60: series(0.1, failed=900), 15: bad})["1h"].outcome is Outcome.NO_DATA


def test_each_burn_is_an_alert_of_its_own_and_tells_what_is_left() -> None:
    """Their labels never hold a figure; the reason does."""
    found = findings({60: series(0.8), 15: series(0.8), 7 * 1440: series(0.995)})["1h"]

    assert len({one.fingerprint for one in findings({}).values()}) == 3
    assert found.kind is FindingKind.SLO
    assert "the budget burns 20 times over 1h and 20 times over 15m, allowed below 14.4" in found.reason
    assert "50% of the budget is left" in found.reason


def test_an_exception_of_the_gate_covers_its_budget() -> None:
    """Who signed for answers that fail must not be woken by how fast they do."""
    bad = {60: series(0.8), 15: series(0.8)}
    signed = GateException(gate="safety", owner="j", reason="known", until=NOON + HOUR)

    assert findings(bad, exceptions=(signed,))["1h"].outcome is Outcome.EXCEPTED
    over = signed.model_copy(update={"until": NOON})
    assert findings(bad, exceptions=(over,))["1h"].outcome is Outcome.FAIL


def test_a_burn_is_held_back_only_where_failures_have_nothing_to_do_with_what_is_judged() -> None:
    """A release that cannot be judged must not save its own budget; and that all is well is believed of no part."""
    bad, good = series(0.8, failed=500), series(1.0, failed=500)

    assert findings({60: bad, 15: bad})["1h"].outcome is Outcome.NO_DATA
    assert findings({60: bad, 15: bad}, hold=False)["1h"].outcome is Outcome.FAIL
    assert findings({60: good, 15: good}, hold=False)["1h"].outcome is Outcome.NO_DATA


def test_what_cannot_be_meant_is_refused() -> None:
    """A budget of nothing burns at once, and two burns of one name would be one alert."""
    with pytest.raises(ValidationError):
        SloPolicy(objectives={"safety": 1.0})
    with pytest.raises(ValidationError, match="must be below"):
        Burn(long_minutes=60, short_minutes=60, factor=1, severity=Severity.PAGE)
    with pytest.raises(ValidationError, match="would be one alert"):
        SloPolicy(burns=(DEFAULT_BURNS[0], DEFAULT_BURNS[0]))


class TestInTheEvaluation:
    async def play(
        self, objectives: dict[str, float], *, later: dict[str, float] | None = None
    ) -> list[tuple[datetime, Alert]]:
        windows, alerts = MemoryWindowStore(WindowPolicy()), MemoryAlertStore()
        policy = GatePolicy.model_validate(
            {"gates": {"safety": {"mean_min": 1.0}}, "slo": {"objectives": objectives, "min_count": 40}}
        )
        told = []
        for bucket in range(40):
            at = NOON + bucket * QUARTER
            bad = 8 <= bucket < 14
            batch = [
                a_judgment(f"c-{bucket}-{number}", at=at, scores={"safety": 3 if bad and number < 10 else 5})
                for number in range(20)
            ]
            await windows.apply(batch, now=at)
            if later is not None and bucket == 13:
                policy = policy.model_copy(
                    update={"slo": policy.slo.model_copy(update={"objectives": later})}
                )
            changes = await evaluate(windows, alerts, policy, now=at + QUARTER)
            told += [(change.at, change.alert) for change in changes if change.notify]
        return told

    async def test_a_fast_burn_pages_soon_and_ends_by_itself(self) -> None:
        """Half of the answers fail at once: an hour shows it, where a window of six needs longer."""
        told = await self.play({"safety": 0.97})

        first_at, first = next(one for one in told if one[1].labels["burn"] == "1h")
        assert (first.kind, first.severity) == (FindingKind.SLO, Severity.PAGE)
        assert NOON + 9 * QUARTER <= first_at <= NOON + 13 * QUARTER
        assert first.evidence is not None
        assert first.evidence.cases
        ends = [alert for _, alert in told if alert.state is AlertState.RESOLVED]
        assert "1h" in {alert.labels["burn"] for alert in ends}

    async def test_a_budget_that_was_taken_out_ends_its_alerts(self) -> None:
        """No finding would ever speak of them again."""
        told = await self.play({"safety": 0.97}, later={"policy_adherence": 0.9})

        assert {a.labels["burn"] for at, a in told if at > NOON + 12 * QUARTER} >= {"1h"}
        last = {alert.fingerprint: alert for _, alert in told}
        assert {alert.state for alert in last.values()} == {AlertState.RESOLVED}
        assert "there is no objective on safety any more" in {
            alert.finding.reason.partition(",")[0] for alert in last.values()
        }

    async def test_without_objectives_it_is_off(self) -> None:
        """Nobody is told of a budget that nobody set."""
        assert await self.play({}) == []
