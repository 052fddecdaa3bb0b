"""What `monitor routes` says of a routing file."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from monitor.cli.main import app

RUN = CliRunner()
ROUTING = """
receivers: {pager: {type: console}, chat: {type: console}}
labels:
  - {matchers: [assistant=shop], set: {team: retail}}
route:
  receiver: nobody
  group_by: [assistant]
  routes:
    - {matchers: [severity=page], receiver: pager, continue: true}
    - matchers: ['severity=~"page|ticket"', team=retail]
      receiver: chat
      active_time_intervals: [office]
    - {matchers: [severity=ticket], receiver: pager}
time_intervals:
  - name: office
    time_intervals: [{times: [{start_time: "09:00", end_time: "17:00"}], location: Europe/Berlin}]
"""


@pytest.fixture(autouse=True)
def _configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "routing.yaml").write_text(ROUTING)
    monkeypatch.setenv("MONITOR_CONFIG", str(tmp_path))


def said(*arguments: str) -> str:
    result = RUN.invoke(app, ["routes", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_it_says_who_is_told_and_why_not_the_others() -> None:
    """Whoever was not woken asks exactly this."""
    text = said("test", "severity=page", "assistant=bot")

    assert "Told to pager, by route.routes.0; group: assistant=bot" in text
    assert 'no, team="retail" and team is absent' in text
    assert "Told to chat" not in text


def test_labels_that_the_file_adds_count() -> None:
    """Nobody types the team of an assistant by hand."""
    text = said("test", "severity=page", "assistant=shop", "--at", "2026-03-10T12:00:00")

    assert "Told to pager" in text
    assert "Told to chat" in text
    assert "also at 2026-03-10 12:00 UTC: only in office" in text


def test_hours_are_said() -> None:
    """A route that is quiet now is not a route that is missing."""
    [chat] = json.loads(
        said("test", "severity=ticket", "assistant=shop", "--at", "2026-03-10T20:00:00", "--json")
    )

    assert (chat["receiver"], chat["quiet_now"], chat["route"]) == ("chat", True, "route.routes.1")


def test_what_no_route_takes_is_told_to_nobody() -> None:
    """And where it can be seen."""
    assert "Told to nobody, by route; `monitor alerts list` shows it" in said("test", "severity=info")


def test_the_tree_is_shown_with_what_it_inherits() -> None:
    """A file says only what differs."""
    lines = said("show").splitlines()

    assert len(lines) == 4
    assert lines[1].startswith('  severity="page" -> pager; grouped by assistant; first after 30s')
    assert lines[1].endswith("goes on to the next route")


def test_what_is_no_label_is_said() -> None:
    """With how it is written."""
    result = RUN.invoke(app, ["routes", "test", "page"])

    assert result.exit_code == 2
    assert "write key=value" in result.stderr
