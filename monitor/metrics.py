"""What a process tells of itself: names in, and whoever keeps the numbers behind a port."""

from typing import Literal, Protocol

Counter = Literal[
    # Events by outcome at the sampler. A share of `undecodable` or `invalid` that rises: a producer changed.
    "monitor_sampled_events_total",
    # Dead letters by stage. Any rise: something is lost until a person retries it.
    "monitor_dead_letters_total",
    # Attempts of a hop that failed and are tried again, by stage. A rise: Redis or Kafka is out of luck.
    "monitor_hop_failures_total",
    # Judge records by stage, outcome (judged, failed, expired, thinned) and kind. A rise of `failed`: the judge ails.
    "monitor_judge_records_total",
    # Calls to a judge beyond the one that each question needs, by stage. A rise: refusals or unreadable replies.
    "monitor_judge_retries_total",
    # Tokens by stage and part (prompt, completion). A rise without more records: prompts grew.
    "monitor_judge_tokens_total",
    # Money by stage, in the currency of judge.prices; absent where the model has no price there.
    "monitor_judge_cost_total",
    # Notifications that a receiver did not take, by receiver. Any rise: people are not told.
    "monitor_undelivered_total",
]
Timing = Literal[
    # Seconds of one call of a hop, by stage; a batch where the hop takes batches. A rise: the stage will lag.
    "monitor_hop_seconds",
    # Seconds of one judgment by stage, as the judge says. A rise towards judge.deadline_seconds: timeouts come next.
    "monitor_judge_seconds",
]
Gauge = Literal[
    # Seconds for which the oldest event in hand is not done, by stage. Above a minute: the stage is stuck.
    "monitor_in_hand_seconds",
    # Seconds between now and the last window evaluated, on the wall's clock. Above an hour: alerts come late.
    "monitor_evaluation_lag_seconds",
    # 0 closed, 1 half open, 2 open, by endpoint. At 2 for minutes: requests wait in Kafka, up to judge.max_age_hours.
    "monitor_judge_breaker",
    # Calls that may be in flight now, by endpoint. Far below judge.concurrency: the endpoint refuses for its limits.
    "monitor_judge_limit",
    # Share that is left of the fullest budget, by stage, at the last request. Below 1 - thin_from: sampling is thinned.
    "monitor_judge_budget_left",
    # Notifications waiting in the outbox. Above a few for minutes: a receiver is down.
    "monitor_outbox_size",
    # 1 when the watchdog's receiver heard it last time, else 0. At 0: a process is dead, or the receiver is.
    "monitor_watchdog",
]
Name = Counter | Timing | Gauge


class Metrics(Protocol):
    """Whoever keeps the numbers. It never blocks and never raises."""

    def count(self, name: Counter, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        ...

    def time(self, name: Timing, seconds: float, **labels: str) -> None:
        """Note one duration."""
        ...

    def gauge(self, name: Gauge, value: float, **labels: str) -> None:
        """Set a figure that rises and falls."""
        ...


class NoMetrics:
    """The twin that keeps nothing."""

    def count(self, name: Counter, amount: float = 1, **labels: str) -> None:
        """Forget it."""

    def time(self, name: Timing, seconds: float, **labels: str) -> None:
        """Forget it."""

    def gauge(self, name: Gauge, value: float, **labels: str) -> None:
        """Forget it."""


LABELS: dict[Name, tuple[str, ...]] = {
    "monitor_sampled_events_total": ("outcome",),
    "monitor_dead_letters_total": ("stage",),
    "monitor_hop_failures_total": ("stage",),
    "monitor_judge_records_total": ("stage", "outcome", "kind"),
    "monitor_judge_retries_total": ("stage",),
    "monitor_judge_tokens_total": ("stage", "part"),
    "monitor_judge_cost_total": ("stage",),
    "monitor_undelivered_total": ("receiver",),
    "monitor_hop_seconds": ("stage",),
    "monitor_judge_seconds": ("stage",),
    "monitor_in_hand_seconds": ("stage",),
    "monitor_evaluation_lag_seconds": (),
    "monitor_judge_breaker": ("endpoint",),
    "monitor_judge_limit": ("endpoint",),
    "monitor_judge_budget_left": ("stage",),
    "monitor_outbox_size": (),
    "monitor_watchdog": (),
}
"""The labels of each; their values come from our own code and configuration, never from events."""
