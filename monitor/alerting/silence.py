"""What people mute, for how long and why. A silence holds back notifications, never evaluation."""

import hashlib
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from monitor.alerting.matchers import Labels, Matchers, all_match, braced
from monitor.intake.event import Moment, Value


class Silence(Value):
    """Labels that are muted for a time, with who says so and why."""

    id: str
    matchers: Matchers
    author: Annotated[str, Field(min_length=1)]
    reason: Annotated[str, Field(min_length=1)]
    starts_at: Moment
    ends_at: Moment

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        if not self.matchers:
            raise ValueError("a silence needs at least one matcher")
        if all(one.matches({}) for one in self.matchers):
            raise ValueError(
                "a silence needs a matcher that does not match an absent label, or it mutes everything"
            )
        if self.ends_at < self.starts_at:
            raise ValueError("a silence cannot end before it begins")
        return self

    def is_active(self, now: datetime) -> bool:
        """Tell whether it mutes now."""
        return self.starts_at <= now < self.ends_at

    def mutes(self, labels: Labels, now: datetime) -> bool:
        """Tell whether it holds back what carries these labels."""
        return self.is_active(now) and all_match(self.matchers, labels)


def a_silence(
    matchers: Matchers, *, author: str, reason: str, starts_at: datetime, ends_at: datetime
) -> Silence:
    """Return a silence under the id of what it says, so that saying it twice makes one."""
    said = "\n".join((braced(matchers), author, reason, starts_at.isoformat(), ends_at.isoformat()))
    return Silence(
        id=hashlib.blake2b(said.encode(), digest_size=6).hexdigest(),
        matchers=matchers,
        author=author,
        reason=reason,
        starts_at=starts_at,
        ends_at=ends_at,
    )


def expired(silence: Silence, now: datetime) -> Silence:
    """Return a silence that ends now; one that is over stays as it was."""
    if now >= silence.ends_at:
        return silence
    start = min(silence.starts_at, now)
    return Silence.model_validate(dict(silence) | {"starts_at": start, "ends_at": now})
