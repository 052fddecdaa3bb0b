"""Whether an endpoint is called at all, with time as an argument."""

from hypothesis import given
from hypothesis import strategies as st

from monitor.judging.breaker import Breaker, BreakerPolicy, Phase, look, note

POLICY = BreakerPolicy(failures_in_a_row=5, window_calls=20, open_seconds=5, open_max_seconds=12)


def after(*ends: bool, breaker: Breaker | None = None, now: float = 0.0) -> Breaker:
    breaker = breaker or Breaker()
    for ok in ends:
        breaker = note(breaker, POLICY, ok=ok, probe=False, now=now)
    return breaker


def test_five_failures_in_a_row_open_it_and_four_do_not() -> None:
    assert after(*[False] * 4).phase is Phase.CLOSED
    assert after(*[False] * 5).phase is Phase.OPEN


def test_half_of_the_last_calls_failing_opens_it_too() -> None:
    """An endpoint that answers every second call never fails five times in a row."""
    assert after(*[False, True] * 10).phase is Phase.OPEN


def test_what_we_gave_up_ourselves_says_nothing() -> None:
    """A deadline of ours is no outage of theirs."""
    breaker = Breaker()
    for _ in range(50):
        breaker = note(breaker, POLICY, ok=None, probe=False, now=0.0)

    assert breaker == Breaker()


def test_while_it_is_open_nobody_calls_and_then_one_does() -> None:
    """A thousand probes at once would be the next outage."""
    breaker = after(*[False] * 5)

    assert look(breaker, now=1.0).wait_seconds == 4.0
    probe = look(breaker, now=5.0)
    assert probe.passes
    assert probe.probe
    assert not look(probe.breaker, now=5.0).passes


def test_a_probe_that_succeeds_closes_it_and_one_that_fails_waits_longer() -> None:
    breaker = look(after(*[False] * 5), now=5.0).breaker

    assert note(breaker, POLICY, ok=True, probe=True, now=6.0) == Breaker()

    waits = []
    for _ in range(3):
        breaker = note(breaker, POLICY, ok=False, probe=True, now=10.0)
        waits.append(breaker.open_seconds)
        breaker = look(breaker, now=100.0).breaker
    assert waits == [10, 12, 12]


def test_a_probe_that_was_cancelled_lets_another_one_try() -> None:
    """Else the breaker would stay half open for ever."""
    breaker = look(after(*[False] * 5), now=5.0).breaker

    assert look(note(breaker, POLICY, ok=None, probe=True, now=6.0), now=6.0).probe


def test_late_failures_of_calls_from_before_do_not_open_it_again() -> None:
    breaker = look(after(*[False] * 5), now=5.0).breaker

    assert after(*[False] * 2, breaker=breaker) == breaker


@given(
    st.lists(
        st.tuples(st.sampled_from([True, False, None]), st.floats(min_value=0, max_value=20)), max_size=200
    )
)
def test_it_is_never_shut_for_longer_than_its_longest_pause(calls: list[tuple[bool | None, float]]) -> None:
    """An endpoint that came back must be found."""
    breaker, now = Breaker(), 0.0
    for ok, gap in calls:
        now += gap
        passage = look(breaker, now=now)
        breaker = passage.breaker
        if passage.passes:
            breaker = note(breaker, POLICY, ok=ok, probe=passage.probe, now=now)
        else:
            assert passage.wait_seconds is not None
            assert passage.wait_seconds <= 12
        assert not breaker.probing
