"""The values of a sustained change: since when, how much, against what, and what it is made of."""

from monitor.intake.event import Moment, Value


class ChangePart(Value):
    """What one group of the traffic contributes to the raw change of the mean, in its points."""

    group: str
    within: float
    """By its own quality."""
    mix: float
    """By its share of the traffic."""
    share_before: float
    share: float
    mean_before: float | None = None
    """None where the group had no unit."""
    mean: float | None = None


class Sustained(Value):
    """What the sequential detector knows of a series that it speaks of. Effects are at an equal mix of traffic."""

    release: str
    """The name of the baseline."""
    baseline_id: str
    onset: Moment
    onset_low: Moment
    onset_high: Moment
    effect: float
    low: float
    high: float
    value: float
    """Weighted mean, or share, since the onset."""
    n: int
    evidence: float
    """In nats."""
    threshold: float
    excused: float = 0.0
    """What of the fall the judge's own shift explains; it is taken off already."""
    raw: float | None = None
    """The change of the raw mean: within and mix of all parts, exactly."""
    parts: tuple[ChangePart, ...] = ()
    explained_by: tuple[str, ...] = ()
    """Other segments of the dimension that would speak, the strongest first."""

    @property
    def normal(self) -> float:
        """Return what the baseline expects at the mix of traffic since the onset."""
        return self.value - self.effect
