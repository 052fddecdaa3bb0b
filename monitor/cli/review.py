"""`monitor review list`: what waits for people to look at."""

from typing import Annotated

import typer
from rich.table import Table

from monitor.cli.asking import JsonOption, NameOption, looking, minute, printed, show_table

app = typer.Typer(help="What people should look at.", no_args_is_help=True)


@app.command("list")
def list_items(
    limit: Annotated[int, typer.Option(help="Items to list, the oldest first.", min=1, max=10_000)] = 50,
    name: NameOption = None,
    as_json: JsonOption = False,
) -> None:
    """List review items; each names a conversation and why it is here, and shows no score to copy."""
    with looking(name) as (_, _, looks):
        # One more than is shown, so that it can be said that there are more.
        found = looks.review(limit + 1)
    items = found[:limit]
    if as_json:
        for item in items:
            printed(item.model_dump_json())
        return
    more = "; --limit shows more" if len(found) > limit else ""
    table = Table(title=f"{len(items)} items, the oldest first{more}; times are UTC", title_justify="left")
    for column in ("conversation", "what", "why", "dimensions", "answered"):
        table.add_column(column, overflow="fold")
    for item in items:
        table.add_row(
            item.conversation_id.replace("[", r"\["),
            f"turn {item.turn_event_id}".replace("[", r"\[") if item.turn_event_id else "the conversation",
            item.why,
            ", ".join(item.dimensions),
            minute(item.observed_at),
        )
    show_table(table, "Nothing waits for people.")
