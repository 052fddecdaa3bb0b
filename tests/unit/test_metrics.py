"""What Prometheus reads, and who else may."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import get_args

import pytest

from agents.metering import MeteredPublisher, metered
from monitor import metrics
from monitor.adapters.prometheus_metrics import Exporter, PrometheusMetrics, is_loopback
from monitor.metrics import LABELS, NoMetrics
from monitor.publishing import Outgoing
from monitor.settings import SettingsError


@pytest.fixture
def kept() -> PrometheusMetrics:
    return PrometheusMetrics()


@pytest.fixture
def page(kept: PrometheusMetrics) -> Iterator[Exporter]:
    exporter = Exporter(kept.registry, host="127.0.0.1", port=19_464, token=None)
    yield exporter
    exporter.close()


def read(port: int, token: str | None = None) -> str:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - our own page
        return answer.read().decode()


def test_every_name_has_its_labels() -> None:
    """A name without labels would fail at its first use, in production."""
    assert set(LABELS) == {*get_args(metrics.Counter), *get_args(metrics.Timing), *get_args(metrics.Gauge)}


def test_what_is_counted_stands_on_the_page(kept: PrometheusMetrics, page: Exporter) -> None:
    """The page is all that Prometheus sees."""
    kept.count("monitor_sampled_events_total", 3, outcome="kept")
    kept.time("monitor_judge_seconds", 0.2, stage="first")
    kept.gauge("monitor_outbox_size", 2)

    text = read(page.port)

    assert 'monitor_sampled_events_total{outcome="kept"} 3.0' in text
    assert 'monitor_judge_seconds_count{stage="first"} 1.0' in text
    assert "monitor_outbox_size 2.0" in text
    assert "monitor_evaluation_lag_seconds" not in text


def test_a_taken_port_is_left_to_its_owner(kept: PrometheusMetrics, page: Exporter) -> None:
    """The processes of one machine share the setting."""
    other = Exporter(kept.registry, host="127.0.0.1", port=page.port, token=None)

    assert other.port > page.port
    other.close()


def test_an_open_address_without_a_token_is_refused(kept: PrometheusMetrics) -> None:
    """Counts of a company's conversations are nobody else's business."""
    with pytest.raises(SettingsError, match="MONITOR_METRICS_TOKEN"):
        Exporter(kept.registry, host="0.0.0.0", port=19_474, token=None)  # noqa: S104 - it is refused


def test_a_token_is_asked_for(kept: PrometheusMetrics) -> None:
    """A token that is set is meant."""
    kept.gauge("monitor_outbox_size", 0)
    exporter = Exporter(kept.registry, host="127.0.0.1", port=19_484, token="s3cret")  # noqa: S106
    for wrong in (None, "other", "s3cre"):
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            read(exporter.port, wrong)
        refused.value.close()
    assert "monitor_outbox_size" in read(exporter.port, "s3cret")
    exporter.close()


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("monitor", False)],  # noqa: S104
)
def test_loopback_is_told_from_the_rest(host: str, expected: bool) -> None:
    """A name may resolve to anything."""
    assert is_loopback(host) is expected


async def test_a_failed_attempt_is_counted_and_raised(kept: PrometheusMetrics) -> None:
    """The hop's patience decides what to do; the metric only tells."""

    async def broken() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await metered(kept, "judge", broken)()

    assert kept.registry.get_sample_value("monitor_hop_failures_total", {"stage": "judge"}) == 1
    assert kept.registry.get_sample_value("monitor_hop_seconds_count", {"stage": "judge"}) is None


async def test_dead_letters_are_counted_by_stage(kept: PrometheusMetrics) -> None:
    """What is buried waits for a person."""
    sent: list[Outgoing] = []

    class Inner:
        async def publish(self, messages: list[Outgoing]) -> None:
            sent.extend(messages)

    publisher = MeteredPublisher(Inner(), kept, stage="judge", dead_letters="dead-letters")
    await publisher.publish([Outgoing("dead-letters", b"", b""), Outgoing("judgments", b"", b"")])

    assert len(sent) == 2
    assert kept.registry.get_sample_value("monitor_dead_letters_total", {"stage": "judge"}) == 1
    NoMetrics().count("monitor_dead_letters_total", stage="judge")
