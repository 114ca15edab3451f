"""What happened to a system as log records, with the span of the cell that ran then."""

from typing import Any

import msgspec
from opentelemetry._logs import Logger, LogRecord, SeverityNumber
from opentelemetry.trace import NonRecordingSpan, set_span_in_context

from accel_lab.actor.events import Event
from accel_lab.telemetry import names
from accel_lab.telemetry.spans import Spans
from accel_lab.views.past.recording import FAULTS
from accel_lab.views.scene.fault_mark import is_asked
from accel_lab.views.scene.scene import NEWS_TYPES

_LEFT_OUT = {"at", "device", "generation"}


class Logs:
    """Writes a record for each fact of supervision, and of worlds."""

    def __init__(self, logger: Logger, spans: Spans) -> None:
        self._logger = logger
        self._spans = spans

    def take(self, fact: Event) -> None:
        """Take one fact; samples are passed over."""
        if not isinstance(fact, NEWS_TYPES):
            return
        failed = isinstance(fact, FAULTS) and not is_asked(fact)
        span = self._spans.cell_at(fact.at)
        self._logger.emit(
            LogRecord(
                timestamp=int(fact.at * 1e9),
                severity_number=SeverityNumber.ERROR if failed else SeverityNumber.INFO,
                severity_text="ERROR" if failed else "INFO",
                event_name=f"accel_lab.{type(fact).__name__}",
                body=text_of(fact),
                attributes=_attributes(fact),
                context=None if span is None else set_span_in_context(NonRecordingSpan(span)),
            )
        )


def text_of(fact: Event) -> str:
    """Return a fact as one line."""
    fields = msgspec.structs.asdict(fact)
    told = (f"{k}={v}" for k, v in fields.items() if k not in _LEFT_OUT and v not in (None, "", ()))
    return f"{type(fact).__name__}({', '.join(told)})"


def _attributes(fact: Event) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, name in (("device", names.DEVICE), ("generation", names.GENERATION)):
        if value := getattr(fact, field, None):
            found[name] = value
    cause = getattr(fact, "cause", None) or getattr(fact, "error", None)
    if cause:
        found["exception.message"] = str(cause)
        if isinstance(cause, BaseException):
            found["exception.type"] = type(cause).__name__
    return found
