"""What is always true of an alert's life, whatever the findings and their times."""

from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from monitor.alerting.alert import Alert, AlertState, Transition
from monitor.alerting.life import advance
from monitor.detection.finding import Outcome, Persistence
from tests.alerts import a_finding
from tests.judgments import MINUTE, NOON


class AlertMachine(RuleBasedStateMachine):
    """One alert; a model beside it remembers only what was found and when."""

    @initialize(
        hold=st.sampled_from([0, 15, 60]), clearance=st.sampled_from([0, 30, 60]), flapping=st.integers(2, 4)
    )
    def begin(self, hold: int, clearance: int, flapping: int) -> None:
        """Choose a policy."""
        self.policy = Persistence(
            for_minutes=hold, clear_minutes=clearance, flapping_count=flapping, flapping_clear_minutes=120
        )
        self.now: datetime = NOON
        self.alert: Alert | None = None
        self.told: list[AlertState] = []
        self.found: list[tuple[datetime, Outcome, bool]] = []

    @rule(outcome=st.sampled_from(list(Outcome)), clear=st.booleans(), quarters=st.integers(1, 4))
    def evaluate(self, outcome: Outcome, clear: bool, quarters: int) -> None:
        """Let time pass and evaluate, twice, as two leaders do."""
        self.now += quarters * 15 * MINUTE
        finding = a_finding(outcome, clear=clear)
        self.found.append((self.now, outcome, finding.clear))
        before = self.alert
        transition = advance(before, finding, now=self.now, persistence=self.policy)
        if transition is not None:
            self.check(before, transition, outcome)
            self.alert = transition.alert
        assert advance(self.alert, finding, now=self.now, persistence=self.policy) is None

    @rule(outcomes=st.lists(st.sampled_from([Outcome.FAIL, Outcome.PASS]), min_size=4, max_size=8))
    def run(self, outcomes: list[Outcome]) -> None:
        """Evaluate boundary by boundary without a gap."""
        for outcome in outcomes:
            self.evaluate(outcome=outcome, clear=True, quarters=1)

    def check(self, before: Alert | None, transition: Transition, outcome: Outcome) -> None:
        """Hold one transition against what it may be."""
        after = transition.alert
        assert transition.expected_version == (before.version if before else 0)
        was = before.state if before else None
        if was is AlertState.FIRING and after.state is AlertState.RESOLVED:
            assert outcome in {Outcome.PASS, Outcome.EXCEPTED}
        if after.state is AlertState.FIRING and was is not AlertState.FIRING:
            assert outcome is Outcome.FAIL
            assert self.failed_throughout(self.policy.hold)
        told = after.state if transition.notify else None
        assert (told is not None) == (was is not after.state and AlertState.FIRING in {was, after.state})
        if told is not None:
            self.told.append(told)

    def failed_throughout(self, period: timedelta) -> bool:
        """Tell whether nothing but failures and gaps lie in the period that ends now."""
        begin = self.now - period
        return all(outcome in {Outcome.FAIL, Outcome.NO_DATA} for at, outcome, _ in self.found if at >= begin)

    @invariant()
    def people_hear_firing_and_resolved_in_turn(self) -> None:
        """No second page without an end, no end without a page."""
        if hasattr(self, "told"):
            expected = [AlertState.FIRING, AlertState.RESOLVED] * len(self.told)
            assert self.told == expected[: len(self.told)]

    @invariant()
    def what_is_remembered_is_bounded(self) -> None:
        """Keep an alert that lives for months from growing."""
        if getattr(self, "alert", None) is not None:
            assert self.alert is not None
            assert len(self.alert.firings) <= 20


AlertMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestAlertMachine = AlertMachine.TestCase
