"""Commands as people type them, run in this process."""

from datetime import timedelta

from typer.testing import CliRunner, Result

from monitor.cli.main import app
from tests.events import NOON

RUN = CliRunner()


def ran(*arguments: str, status: int = 0) -> Result:
    """Run `monitor` with these arguments; it must end with this exit status."""
    result = RUN.invoke(app, [*arguments])
    assert result.exit_code == status, result.output
    return result


def days_ago(days: float) -> str:
    """Return a time before the tests' noon as an option takes it."""
    return f"{NOON - timedelta(days=days):%Y-%m-%dT%H:%M:%S}"
