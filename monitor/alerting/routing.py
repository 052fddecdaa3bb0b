"""config/routing.yaml: who is told of what."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitor.alerting.group import Rules
from monitor.alerting.inhibition import InhibitRule
from monitor.alerting.labels import LabelRule
from monitor.alerting.links import CaseUrl, Links
from monitor.alerting.matchers import matcher
from monitor.alerting.receiver_policy import ReceiverPolicy
from monitor.alerting.routes import Node, Route, matching, tree
from monitor.alerting.times import NamedTimes
from monitor.alerting.watchdog import WatchdogPolicy
from monitor.detection.finding import Failures, Severity
from monitor.windows.bucket import OVERALL

NOBODY = "nobody"
"""The receiver that is always there and tells nobody: `monitor alerts list` shows what goes to it."""
DEFAULT_INHIBIT_RULES = (
    # While the judge fails whatever it is asked, what it says of quality is no news. Failures that come with a prompt
    # or a stratum may hide the bad answers, and mute nothing; nor does drift, which is reckoned with.
    InhibitRule(
        source_matchers=(matcher("finding=judge"), matcher(f"failures={Failures.SPREAD}")),
        target_matchers=(matcher('finding=~"gate|slo|regression|critical_rate"'),),
    ),
    # Who is woken for a fast burn needs no ticket for a slow one.
    InhibitRule(
        source_matchers=(matcher('finding="slo"'), matcher('severity="page"')),
        target_matchers=(matcher('finding="slo"'), matcher('severity="ticket"')),
        equal=("assistant", "environment", "dimension", "variant"),
    ),
    # What all traffic suffers from, each part of it does; but a ticket must not mute a page.
    InhibitRule(
        source_matchers=(
            matcher('finding=~"gate|regression|critical_rate"'),
            matcher(f'segment="{OVERALL}"'),
        ),
        target_matchers=(
            matcher('finding=~"gate|regression|critical_rate"'),
            matcher(f'segment!="{OVERALL}"'),
        ),
        equal=("assistant", "environment", "dimension", "variant", "severity"),
    ),
    # A fall and the gate that it leads to are one thing: the fall says since when, and the graver one is told.
    InhibitRule(
        source_matchers=(matcher('finding=~"regression|critical_rate"'),),
        target_matchers=(matcher('finding="gate"'),),
        equal=("assistant", "environment", "dimension", "variant", "severity", "segment"),
    ),
    InhibitRule(
        source_matchers=(matcher('finding=~"regression|critical_rate"'), matcher('severity="page"')),
        target_matchers=(matcher('finding="gate"'), matcher('severity="ticket"')),
        equal=("assistant", "environment", "dimension", "variant", "segment"),
    ),
    InhibitRule(
        source_matchers=(matcher('finding=~"gate|slo"'), matcher('severity="page"')),
        target_matchers=(matcher('finding=~"regression|critical_rate"'), matcher('severity="ticket"')),
        equal=("assistant", "environment", "dimension", "variant", "segment"),
    ),
)


class DeliveryPolicy(BaseModel):
    """How long a receiver that fails is tried, and when people hear of it by another route."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    give_up_hours: Annotated[float, Field(gt=0, le=168)] = 24
    alert_after_minutes: Annotated[float, Field(gt=0, le=1440)] = 10


class RoutingPolicy(BaseModel):
    """Receivers by name, and the tree of routes that leads to them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    receivers: Annotated[dict[str, ReceiverPolicy], Field(min_length=1)]
    route: Route | None = None
    routes: dict[Severity, tuple[str, ...]] | None = None
    """The short form: names by severity, with the tree's usual times."""
    inhibit_rules: tuple[InhibitRule, ...] = DEFAULT_INHIBIT_RULES
    time_intervals: tuple[NamedTimes, ...] = ()
    labels: tuple[LabelRule, ...] = ()
    delivery: DeliveryPolicy = DeliveryPolicy()
    watchdog: WatchdogPolicy | None = None
    external_url: str = ""
    case_url: CaseUrl = ""

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        if (self.route is None) == (self.routes is None):
            raise ValueError(
                "needs route, the tree, or routes, its short form by severity; one of them (docs/routing.md)"
            )
        if NOBODY in self.receivers:
            raise ValueError(f"a receiver cannot be called {NOBODY}: that name is taken, and tells nobody")
        return self

    @model_validator(mode="after")
    def _every_route_leads_somewhere(self) -> Self:
        known = {*self.receivers, NOBODY}
        for severity, names in (self.routes or {}).items():
            for name in names:
                if name not in known:
                    raise ValueError(
                        f"{severity} goes to the receiver {name}, which is not among: {self._known}"
                    )
        seen: set[tuple[str, str]] = set()
        times = {one.name for one in self.time_intervals}
        for node in self.tree.walk():
            if node.receiver not in known:
                raise ValueError(f"{node.place}: the receiver {node.receiver} is not among: {self._known}")
            for name in (*node.mute_times, *node.active_times):
                if name not in times:
                    raise ValueError(f"{node.place}: time_intervals has no {name}; it has {sorted(times)}")
            if (node.key, node.receiver) in seen:
                raise ValueError(
                    f"{node.place}: another route has the same matchers and receiver; take one out"
                )
            seen.add((node.key, node.receiver))
        pages = {node.receiver for node in matching(self.tree, {"severity": Severity.PAGE})}
        if pages <= {NOBODY}:
            raise ValueError("page goes to nobody; name at least one receiver for it")
        return self

    @model_validator(mode="after")
    def _watchdog_leads_somewhere(self) -> Self:
        if self.watchdog is not None and self.watchdog.receiver not in self.receivers:
            raise ValueError(f"watchdog: the receiver {self.watchdog.receiver} is not among: {self._known}")
        return self

    @model_validator(mode="after")
    def _a_failed_delivery_is_told_elsewhere(self) -> Self:
        for name, one in self.receivers.items():
            if one.type == "console":
                continue
            labels = {"finding": "delivery", "receiver": name, "severity": Severity.PAGE}
            told = {node.receiver for node in matching(self.tree, labels)} - {NOBODY}
            if told == {name}:
                raise ValueError(
                    f"when {name} fails, only {name} would be told; give page another receiver beside it, "
                    f'or a route with the matcher finding="delivery"'
                )
        return self

    @property
    def links(self) -> Links:
        """Return what renderers make links of."""
        return Links(external_url=self.external_url, case_url=self.case_url)

    @cached_property
    def tree(self) -> Node:
        """Return the tree with everything inherited."""
        return tree(self.route if self.route is not None else _from_severities(self.routes or {}))

    @cached_property
    def rules(self) -> Rules:
        """Return what the grouping engine reads."""
        return Rules(
            root=self.tree,
            receivers=frozenset(self.receivers),
            inhibit=self.inhibit_rules,
            times={one.name: one for one in self.time_intervals},
            firing_only=frozenset(name for name, one in self.receivers.items() if not one.send_resolved),
            nobody=frozenset({NOBODY}),
        )

    def receivers_of(self, severity: Severity) -> tuple[str, ...]:
        """Return the names of whoever is told of this severity, whatever else an alert's labels say."""
        nodes = matching(self.tree, {"severity": severity})
        return tuple(dict.fromkeys(node.receiver for node in nodes if node.receiver != NOBODY))

    @property
    def _known(self) -> str:
        return ", ".join(sorted(self.receivers))


def _from_severities(routes: Mapping[Severity, tuple[str, ...]]) -> Route:
    """Return the tree that the short form stands for: one route a name, none of which ends the search."""
    return Route(
        receiver=NOBODY,
        group_by=("assistant", "environment"),
        routes=tuple(
            Route.model_validate(
                {
                    "matchers": [f'severity="{severity}"'],
                    "receiver": name,
                    "repeat_interval": "4h" if severity is Severity.PAGE else "24h",
                    "continue": True,
                }
            )
            for severity, names in routes.items()
            for name in names
        ),
    )
