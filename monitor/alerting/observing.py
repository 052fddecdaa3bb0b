"""Windows in, what each assistant's window shows out, in the one scope that speaks for it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from monitor.alerting.alert import Alert
from monitor.detection.gates import GatePolicy
from monitor.judging.rubric import TargetKind
from monitor.windows.bucket import Scope
from monitor.windows.store import WindowStore
from monitor.windows.window import Window, WindowStats, all_stats, window


@dataclass(frozen=True)
class Observed:
    """One assistant's window, in the one scope that speaks for it."""

    scope: Scope
    window: Window
    stats: Mapping[tuple[str, str], WindowStats]

    def owns(self, alert: Alert) -> bool:
        """Tell whether an alert is about this assistant."""
        identity = identity_of(self.scope)
        return all(
            alert.labels.get(key) == identity.get(key) for key in ("assistant", "environment", "variant")
        )


async def observe(
    windows: WindowStore, policy: GatePolicy, now: datetime, judge_versions: Collection[str] | None
) -> list[Observed]:
    """Return the window that ends now of every assistant that is watched.

    `judge_versions` are those whose series speak (the first LLM stage); without it the scope with the most
    units speaks for its assistant.
    """
    start = now - policy.window
    best: dict[tuple[tuple[str, str], ...], tuple[int, str, Scope, Window]] = {}
    for scope in await windows.scopes():
        if scope.target is not TargetKind.CONVERSATION or scope.environment not in policy.environments:
            continue
        if judge_versions is not None and scope.judge_version not in judge_versions:
            continue
        seen = window(await windows.buckets(scope, start, now), start, now)
        candidate = (seen.units, scope.id, scope, seen)
        key = tuple(sorted(identity_of(scope).items()))
        if key not in best or candidate[:2] > best[key][:2]:
            best[key] = candidate
    return [Observed(scope, seen, all_stats(seen.counts)) for _, _, scope, seen in best.values()]


def identity_of(scope: Scope) -> dict[str, str]:
    """Return the labels that name an assistant."""
    labels = {"assistant": scope.assistant, "environment": str(scope.environment)}
    return labels | ({"variant": scope.variant} if scope.variant else {})
