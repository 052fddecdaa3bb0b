"""Structured logs: one line a fact, ids and counts, never a user's words, never the locals of a frame."""

import logging
import sys

import structlog

from monitor.settings import Settings


def configure(settings: Settings) -> None:
    """Set up structlog and, through it, the libraries' own loggers."""
    level = logging.getLevelNamesMapping().get(settings.log_level.upper(), logging.INFO)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    # Faust prints a table of its settings at every start, and a warning for each quiet topic.
    logging.getLogger("faust").setLevel(logging.ERROR)
    # It takes a quiet partition for a stalled one; progress is measured in agents/consume.py.
    logging.getLogger("faust.transport.drivers.aiokafka").setLevel(logging.CRITICAL)
    logging.getLogger("mode").setLevel(logging.ERROR)
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    logging.getLogger("kafka").setLevel(logging.ERROR)
    # The default renderer of tracebacks prints the locals of each frame, and with them what users said.
    tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if settings.log_json else structlog.dev.ConsoleRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(tracebacks),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
