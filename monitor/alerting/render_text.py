"""A message in, plain lines out, in the order in which a person asks."""

from collections.abc import Iterator

from monitor.alerting import plot
from monitor.alerting.message import Message, ToldAlert, ToldCase


def as_text(message: Message) -> str:
    """Return a whole message."""
    lines = [message.title]
    for number, alert in enumerate(message.alerts, start=1):
        if len(message.alerts) > 1:
            head = f"[{alert.status.upper()}] [{alert.severity}] {alert.title}"
            lines += ["", f"{number} of {len(message.alerts)}: {head}"]
        lines += alert_lines(alert)
    if message.others:
        lines += ["", "Also in this group", *(f"  {line}" for line in message.others)]
    if message.left_out:
        lines += ["", "Not in this message", *(f"  {line}" for line in message.left_out)]
    return "\n".join([*lines, f"Id: {message.id}"])


def alert_lines(alert: ToldAlert) -> Iterator[str]:
    """Return one alert: why, what changed, since when and how much, where, the worst cases, whom to believe."""
    yield alert.reason
    if alert.changed:
        yield from ("", "What changed", *(f"  {line}" for line in alert.changed))
    yield from ("", "Since when, how much", *(f"  {line}" for line in alert.amount))
    if alert.plot:
        yield f"  {plot.line(alert.plot)}"
    if alert.where:
        yield from ("", "Where", *(f"  {line}" for line in alert.where))
    if alert.cases:
        yield from ("", alert.cases_heading)
        for case in alert.cases:
            yield from _case(case)
    if alert.agreement:
        yield from ("", "Judge and people", f"  {alert.agreement}")
    yield from ("", f"Runbook: {alert.runbook}", f"In full: {alert.command}")


def _case(case: ToldCase) -> Iterator[str]:
    yield f"  {case.head}"
    yield f"    {case.reason}"
    yield from ("    " + quote.marked('"', '"') for quote in case.quotes)
    yield f"    $ {case.command}"
    if case.link:
        yield f"    {case.link}"
