"""`monitor judge ...`: a file judged, and what belongs to judges: anchors, comparison, migration."""

from typing import Any

import typer
from typer.core import TyperGroup

from monitor.cli import judge_anchors
from monitor.cli.judge_command import judge
from monitor.cli.judge_compare import judge_compare
from monitor.cli.judge_migrate import judge_migrate

FILE = "file"


class FileByDefault(TyperGroup):
    """A group whose first argument may be a file: `monitor judge FILE` is `monitor judge file FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command's name in front where none stands."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [FILE, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=FileByDefault,
    no_args_is_help=True,
    help="Judge a file (`monitor judge FILE`), pin anchors, compare judges, migrate to another one.",
)
app.command(FILE)(judge)
app.command("compare")(judge_compare)
app.command("migrate")(judge_migrate)
app.add_typer(judge_anchors.app, name="anchors")
