"""Rules and what fires in, what is muted by what out: Alertmanager's inhibition."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from monitor.alerting.matchers import Labels, SomeMatchers, all_match, braced


class InhibitRule(BaseModel):
    """While a source fires, targets with the same values of the equal labels are muted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source_matchers: SomeMatchers
    target_matchers: SomeMatchers
    equal: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it in one line."""
        same = f" with the same {', '.join(self.equal)}" if self.equal else ""
        return f"{braced(self.source_matchers)} mutes {braced(self.target_matchers)}{same}"


class Inhibition:
    """What fires now, indexed so that a storm is compared once, not each with each."""

    def __init__(self, rules: Sequence[InhibitRule], firing: Sequence[Labels]) -> None:
        """Take the labels of every alert that fires."""
        self._rules: list[tuple[InhibitRule, set[tuple[str, ...]], set[tuple[str, ...]]]] = []
        for rule in rules:
            sources = [labels for labels in firing if all_match(rule.source_matchers, labels)]
            plain = [labels for labels in sources if not all_match(rule.target_matchers, labels)]
            self._rules.append((rule, {_key(rule, s) for s in sources}, {_key(rule, s) for s in plain}))

    def muted_by(self, labels: Labels) -> InhibitRule | None:
        """Return the rule that mutes these labels, if one does."""
        for rule, sources, plain_sources in self._rules:
            if not all_match(rule.target_matchers, labels):
                continue
            # What matches both sides is muted only by what does not, or two such would mute each other.
            both = all_match(rule.source_matchers, labels)
            if _key(rule, labels) in (plain_sources if both else sources):
                return rule
        return None


def _key(rule: InhibitRule, labels: Labels) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in rule.equal)
