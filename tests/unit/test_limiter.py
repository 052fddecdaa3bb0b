"""How many calls an endpoint is given, with time as an argument."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from monitor.judging.limiter import (
    Answer,
    Limiter,
    LimiterPolicy,
    admit,
    end,
    new_limiter,
)

POLICY = LimiterPolicy(concurrency_max=8)


def started(
    limiter: Limiter, policy: LimiterPolicy = POLICY, *, now: float = 0.0, tokens: int = 1
) -> Limiter:
    admission = admit(limiter, policy, tokens=tokens, now=now)
    assert admission.started
    return admission.limiter


def full() -> Limiter:
    limiter = new_limiter(POLICY, now=0.0)
    for _ in range(8):
        limiter = started(limiter)
    return limiter


def test_no_more_calls_than_the_limit_are_in_flight() -> None:
    """The ninth waits for an end, not for a time."""
    admission = admit(full(), POLICY, tokens=1, now=0.0)

    assert not admission.started
    assert admission.wait_seconds is None


def test_a_refusal_halves_the_limit_and_a_burst_of_them_halves_it_once() -> None:
    """Eight refusals of one moment are one message."""
    limiter = full()
    for _ in range(8):
        limiter = end(limiter, POLICY, Answer.REFUSED, now=1.0)

    assert limiter.limit == 4

    limiter = end(started(limiter, now=70.0), POLICY, Answer.REFUSED, now=70.0)
    assert limiter.limit == 2


def test_answers_raise_the_limit_step_by_step_up_to_the_most() -> None:
    limiter = end(full(), POLICY, Answer.REFUSED, now=1.0)
    seen = []
    for _ in range(200):
        while (admission := admit(limiter, POLICY, tokens=1, now=100.0)).started:
            limiter = admission.limiter
        limiter = end(limiter, POLICY, Answer.TAKEN, now=100.0)
        seen.append(limiter.limit)

    assert seen == sorted(seen)
    assert max(later - earlier for earlier, later in pairwise(seen)) <= 0.25
    assert seen[-1] == 8


def test_one_refusal_pauses_nobody_else_and_three_in_a_row_pause_all() -> None:
    """A limit by chance must not stop the others; one that is reached must not meet a storm."""
    limiter = end(full(), POLICY, Answer.REFUSED, now=1.0, wait_seconds=20.0)
    assert limiter.paused_until <= 1.0

    for _ in range(2):
        limiter = end(limiter, POLICY, Answer.REFUSED, now=1.0, wait_seconds=20.0)
    for _ in range(4):
        limiter = end(limiter, POLICY, Answer.UNKNOWN, now=1.0)

    admission = admit(limiter, POLICY, tokens=1, now=2.0)
    assert not admission.started
    assert admission.wait_seconds == 19.0
    assert admit(limiter, POLICY, tokens=1, now=21.0).started


def test_a_pause_is_never_longer_than_its_limit() -> None:
    """An endpoint that says a day has made a mistake."""
    limiter = full()
    for _ in range(3):
        limiter = end(limiter, POLICY, Answer.REFUSED, now=0.0, wait_seconds=86_400.0)

    assert limiter.paused_until == 60.0


def test_a_call_larger_than_a_burst_of_tokens_still_goes_and_is_paid_off() -> None:
    """Else the longest conversations would wait for ever."""
    policy = LimiterPolicy(concurrency_max=8, tokens_per_minute=1200)
    limiter = started(new_limiter(policy, now=0.0), policy, tokens=5000)

    later = admit(limiter, policy, tokens=10, now=1.0)
    assert not later.started
    assert later.wait_seconds is not None
    assert later.wait_seconds > 200


def test_what_a_call_took_beyond_its_reckoning_is_settled() -> None:
    policy = LimiterPolicy(concurrency_max=8, tokens_per_minute=1200)
    limiter = started(new_limiter(policy, now=0.0), policy, tokens=10)

    assert end(limiter, policy, Answer.TAKEN, now=0.0, tokens_over=500).tokens == limiter.tokens - 500


@given(
    gaps=st.lists(st.floats(min_value=0, max_value=5), min_size=1, max_size=200),
    a_minute=st.integers(min_value=1, max_value=600),
)
def test_no_minute_has_more_requests_than_its_number_and_one_burst(gaps: list[float], a_minute: int) -> None:
    policy = LimiterPolicy(concurrency_max=1000, requests_per_minute=a_minute)
    limiter = new_limiter(policy, now=0.0)
    now, at = 0.0, []
    for gap in gaps:
        now += gap
        while (admission := admit(limiter, policy, tokens=1, now=now)).started:
            limiter = admission.limiter
            at.append(now)
        limiter = admission.limiter

    for moment in at:
        assert sum(moment <= other < moment + 60 for other in at) <= a_minute + max(1, a_minute / 12) + 1


@given(st.lists(st.sampled_from([*Answer, None]), max_size=300))
def test_the_limit_stays_between_one_and_the_most_and_slots_are_never_lost(
    events: list[Answer | None],
) -> None:
    """None starts a call; the others end one."""
    limiter = new_limiter(POLICY, now=0.0)
    in_flight = 0
    for number, event in enumerate(events):
        now = number * 0.3
        if event is None:
            admission = admit(limiter, POLICY, tokens=1, now=now)
            limiter = admission.limiter
            in_flight += admission.started
        elif in_flight:
            limiter = end(limiter, POLICY, event, now=now, wait_seconds=0.5)
            in_flight -= 1
        assert limiter.in_flight == in_flight <= 8
        assert 1 <= limiter.limit <= 8
