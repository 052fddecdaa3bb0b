"""The funnel: what the sampler and the store count, put together."""

from monitor.funnel import Funnel, difference, funnel

SAMPLER = {
    "sampled_out:base:default": 90,
    "sampled_out:base:not_kept": 4,
    "invalid": 3,
    "oversize": 1,
    "undecodable": 2,
}
STORE = {
    "turn|judged": 5,
    "turn|failed": 1,
    "turn|queued": 2,
    "turn|duplicate": 1,
    "conversation|waiting": 1,
    "end|applied": 2,
    "feedback|applied": 1,
    "summary|not_yet_judged": 1,
    "event|invalid": 1,
    "judgment:turn|judged": 5,
    "judgment:conversation|failed": 1,
    "closed|idle": 2,
    "closed|end_event": 1,
}


def test_every_event_has_one_place() -> None:
    """Received is the sum; a count in two places, or in none, would show here."""
    found = funnel(SAMPLER, STORE)

    assert found.events == {
        "sampled_out:base:default": 90,
        "sampled_out:base:not_kept": 4,
        "invalid_at_door": 3,
        "oversize": 1,
        "undecodable": 2,
        "judged": 5,
        "failed": 1,
        "queued": 2,
        "duplicate": 1,
        "waiting": 1,
        "applied": 3,
        "not_yet_judged": 1,
        "invalid": 1,
    }
    assert found.received == 115
    assert found.open == 3
    assert found.finished == 112
    assert found.sampled == 15


def test_judgments_and_closes_are_no_events() -> None:
    """A turn and its judgment would be counted as two."""
    found = funnel({}, STORE)

    assert found.judgments == {"turn judged": 5, "conversation failed": 1}
    assert found.closed == {"idle": 2, "end_event": 1}
    assert found.received == 15


def test_what_is_kept_and_still_no_event_is_told_from_what_was_refused_at_the_door() -> None:
    """Both are called invalid where they are counted, and one of them was sampled."""
    found = funnel({"invalid": 3}, {"event|invalid": 1})

    assert found.events == {"invalid_at_door": 3, "invalid": 1}
    assert found.sampled == 1


def test_nothing_came_from_nothing() -> None:
    """An empty deployment is no error."""
    assert funnel({}, {}) == Funnel()
    assert Funnel().received == Funnel().open == Funnel().sampled == 0


def test_the_difference_of_two_looks_shows_what_came_and_went() -> None:
    """What was queued is judged by the second look: the one falls as the other rises."""
    before = funnel({"invalid": 1}, {"turn|queued": 2, "closed|idle": 1, "judgment:turn|judged": 1})
    after = funnel(
        {"invalid": 1}, {"turn|judged": 2, "turn|waiting": 1, "closed|idle": 1, "judgment:turn|judged": 3}
    )

    found = difference(after, before)

    assert found.events == {"judged": 2, "waiting": 1, "queued": -2}
    assert found.judgments == {"turn judged": 2}
    assert found.closed == {}
