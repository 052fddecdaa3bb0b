"""A Faust app for one stage: its own consumer group, raw bytes, loopback only, nothing done at import."""

from typing import Any
from urllib.parse import quote

import faust
from faust.types.auth import AuthProtocol

from monitor.settings import Settings
from monitor.topics import LED_STAGES, MESSAGE_BYTES_MAX


def build_app(stage: str, settings: Settings) -> Any:
    """Build the app of one stage; each stage is a consumer group of its own, so stages scale apart."""
    timeout = settings.session_timeout_seconds
    folder = settings.data_dir / "faust"
    folder.mkdir(parents=True, exist_ok=True)
    return faust.App(
        f"{settings.namespace}-{stage}",
        broker=f"kafka://{settings.kafka.replace(',', ';kafka://')}",
        broker_credentials=_credentials(settings),
        key_serializer="raw",
        value_serializer="raw",
        web_enabled=False,
        web_bind="127.0.0.1",
        datadir=str(folder / f"{quote(settings.namespace, safe='')}-{stage}"),
        broker_session_timeout=timeout,
        broker_heartbeat_interval=max(1.0, timeout / 6),
        broker_rebalance_timeout=max(60, timeout * 2),
        broker_commit_interval=1.0,
        consumer_auto_offset_reset="earliest",
        topic_allow_declare=False,
        # Only timers need a leader; the topic by which one is found is made with all others.
        topic_disable_leader=stage not in LED_STAGES,
        producer_acks=-1,
        producer_max_request_size=MESSAGE_BYTES_MAX,
        # SIGTERM and rebalances wait for the calls in hand; `consume.py` bounds the wait.
        stream_wait_empty=True,
        # Liveness is progress (`consume.Progress`), not the age of the last event on a quiet topic.
        stream_processing_timeout=0,
    )


def _credentials(settings: Settings) -> Any:
    if settings.kafka_security_protocol == AuthProtocol.PLAINTEXT.value:
        return None
    import ssl  # noqa: PLC0415 - only where the connection is encrypted

    context = (
        ssl.create_default_context(cafile=settings.kafka_ca_file)
        if "SSL" in settings.kafka_security_protocol
        else None
    )
    if settings.kafka_username and settings.kafka_password:
        return faust.SASLCredentials(
            username=settings.kafka_username,
            password=settings.kafka_password.get_secret_value(),
            mechanism=settings.kafka_sasl_mechanism or "PLAIN",
            ssl_context=context,
        )
    return faust.SSLCredentials(context=context)
