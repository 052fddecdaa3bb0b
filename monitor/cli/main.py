"""The command `monitor`."""

import typer

from monitor.cli import (
    alert_acts,
    alerts,
    config,
    configurations,
    dead_letters,
    demo,
    judge_app,
    review,
    routes,
    run,
    silences,
    topics,
)
from monitor.cli.calibrate import calibrate
from monitor.cli.explain import explain
from monitor.cli.forget import forget
from monitor.cli.judge_health import judge_health
from monitor.cli.replay import replay
from monitor.cli.schema import schema
from monitor.cli.status import status
from monitor.cli.windows import windows

app = typer.Typer(
    name="monitor",
    help="A quality monitor for AI assistants in production.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(run.up)
app.command()(run.work)
app.command()(run.sample)
app.command()(demo.demo)
app.command()(replay)
app.command()(calibrate)
app.command()(judge_health)
app.command()(status)
app.command()(windows)
app.command()(explain)
app.command()(forget)
app.command()(schema)
alert_acts.attach(alerts.app)
app.add_typer(judge_app.app, name="judge")
app.add_typer(alerts.app, name="alerts")
app.add_typer(routes.app, name="routes")
app.add_typer(silences.app, name="silence")
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(topics.app, name="topics")
app.add_typer(config.app, name="config")
app.add_typer(configurations.app, name="configurations")
app.add_typer(review.app, name="review")


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
