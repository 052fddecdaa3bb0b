"""A message in, one HTML fragment out: no script, no address but those of runbooks and cases, texts as texts."""

from collections.abc import Iterator
from html import escape

from monitor.alerting import plot
from monitor.alerting.message import Message, ToldAlert


def as_html(message: Message) -> str:
    """Return a whole message; long words break instead of widening the page."""
    parts = [f"<h2>{escape(message.title)}</h2>"]
    for alert in message.alerts:
        if len(message.alerts) > 1:
            parts.append(f"<h3>{escape(f'[{alert.status.upper()}] [{alert.severity}] {alert.title}')}</h3>")
        parts += _alert(alert)
    if message.others:
        parts += _listed("Also in this group", message.others)
    if message.left_out:
        parts += _listed("Not in this message", message.left_out)
    parts.append(f"<p><small>Id: {escape(message.id)}</small></p>")
    return f'<div style="font-family:sans-serif;overflow-wrap:anywhere">{"".join(parts)}</div>'


def _alert(alert: ToldAlert) -> Iterator[str]:
    yield f"<p>{escape(alert.reason)}</p>"
    if alert.changed:
        yield from _listed("What changed", alert.changed)
    yield from _listed("Since when, how much", alert.amount)
    if alert.plot:
        # Mail programs leave out drawings and their titles.
        yield f"{plot.svg(alert.plot)}<p><small>{escape(plot.line(alert.plot))}</small></p>"
    if alert.where:
        yield from _listed("Where", alert.where)
    if alert.cases:
        yield f"<h4>{escape(alert.cases_heading)}</h4><ul>"
        for case in alert.cases:
            quotes = "".join(
                f"<blockquote>{escape(quote.marked('“', '”'))}</blockquote>" for quote in case.quotes
            )
            head = f"<strong>{escape(case.head)}</strong><br>{escape(case.reason)}"
            link = f"<br>{_link(case.link)}" if case.link else ""
            yield f"<li>{head}{quotes}<code>{escape(case.command)}</code>{link}</li>"
        yield "</ul>"
    if alert.agreement:
        yield f"<p><strong>Judge and people:</strong> {escape(alert.agreement)}</p>"
    in_full = f"<strong>In full:</strong> <code>{escape(alert.command)}</code>"
    yield f"<p><strong>Runbook:</strong> {_link(alert.runbook)}<br>{in_full}</p>"


def _listed(heading: str, lines: tuple[str, ...]) -> Iterator[str]:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    yield f"<h4>{escape(heading)}</h4><ul>{items}</ul>"


def _link(address: str) -> str:
    text = escape(address)
    if address.startswith(("http://", "https://")):
        return f'<a href="{text}">{text}</a>'
    return text
