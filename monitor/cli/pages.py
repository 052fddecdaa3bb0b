"""`monitor alerts pages`: how often somebody was woken, by the routes of now played on the alerts of the past."""

import json
from datetime import timedelta
from typing import Annotated

import typer

from monitor.alerting.receiver import Notification
from monitor.alerting.shifts import PAGES_MAX, SHIFT, Paging, paging, played
from monitor.cli.asking import JsonOption, NameOption, broker, latest, looking, minute, printed
from monitor.topics import ALERTS

HOURS = f"{SHIFT / timedelta(hours=1):g} h"


def pages(
    days: Annotated[int, typer.Option(help="Of the last days; 0 for all that the topic holds.", min=0)] = 30,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the pages a shift of each receiver. Reads the topic `alerts`; other routes: set MONITOR_CONFIG."""
    with looking(name) as (settings, policy, looks):
        silences = looks.silences()
        with broker(settings) as admin:
            held = admin.read(settings.topic_prefix + ALERTS)
            record = [Notification.model_validate_json(one.value) for one in held if one.value]
        since = latest(policy, looks) - timedelta(days=days)
    told = [one for one in played(policy.routing, record, silences) if not days or one.at >= since]
    found = paging(told)
    if as_json:
        printed(json.dumps([_values(one) for one in found], indent=2))
        return
    for one in found:
        printed(said(one))
    if not found:
        printed(
            f"Nobody was told of anything in the last {days} days."
            if days
            else "Nobody was told of anything."
        )


def said(one: Paging) -> str:
    """Return what one receiver was told and how often it rang, in a line."""
    when = f" ({', '.join(f'{minute(at)} UTC' for at in one.pages[:5])}{', ...' if one.pages[5:] else ''})"
    return (
        f"{one.receiver}: pages: {len(one.pages)}{when if one.pages else ''}, at most {one.busiest} in any {HOURS} "
        f"(goal: {PAGES_MAX}); {one.messages} messages in all, "
        f"which count {one.held_back} alerts held back"
    )


def _values(one: Paging) -> dict[str, object]:
    return {
        "receiver": one.receiver,
        "pages": [at.isoformat() for at in one.pages],
        "most_in_12_hours": one.busiest,
        "messages": one.messages,
        "held_back": one.held_back,
    }
