"""A message in, Markdown out; what users, judges and producers wrote is never read as markup."""

import re
from collections.abc import Iterator

from monitor.alerting import plot
from monitor.alerting.message import Message, ToldAlert

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&$:@])")


def as_markdown(message: Message) -> str:
    """Return a whole message; it ends with a line break."""
    lines = [f"# {escaped(message.title)}", ""]
    for alert in message.alerts:
        if len(message.alerts) > 1:
            lines += [f"## {escaped(f'[{alert.status.upper()}] [{alert.severity}] {alert.title}')}", ""]
        lines += [*_alert(alert), ""]
    if message.others:
        lines += [*_listed("Also in this group", message.others), ""]
    if message.left_out:
        lines += ["**Not in this message**", "", *(f"- {escaped(line)}" for line in message.left_out), ""]
    return "\n".join([*lines, f"Id: {code(message.id)}", ""])


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def code(text: str) -> str:
    """Return a text as code, fenced by more backticks than it holds in a row."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def _alert(alert: ToldAlert) -> Iterator[str]:
    yield escaped(alert.reason)
    if alert.changed:
        yield from _listed("What changed", alert.changed)
    yield from _listed("Since when, how much", alert.amount)
    if alert.plot:
        yield from ("", code(plot.line(alert.plot)))
    if alert.where:
        yield from _listed("Where", alert.where)
    if alert.cases:
        yield from ("", f"**{alert.cases_heading}**", "")
        for case in alert.cases:
            yield f"- {escaped(case.head)}: {escaped(case.reason)}"
            yield from (f"  - {escaped(quote.marked('“', '”'))}" for quote in case.quotes)
            yield f"  - {code(case.command)}"
            if case.link:
                yield f"  - {escaped(case.link)}"
    if alert.agreement:
        yield from ("", f"**Judge and people:** {escaped(alert.agreement)}")
    yield from ("", f"**Runbook:** {escaped(alert.runbook)}", "", f"**In full:** {code(alert.command)}")


def _listed(heading: str, lines: tuple[str, ...]) -> Iterator[str]:
    yield from ("", f"**{heading}**", "", *(f"- {escaped(line)}" for line in lines))
