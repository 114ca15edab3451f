"""What happened to a system as log records, with the span of the cell that ran then."""

from typing import Any

from opentelemetry._logs import Logger, LogRecord, SeverityNumber
from opentelemetry.trace import NonRecordingSpan, set_span_in_context

from accel_lab.actor.events import Event
from accel_lab.compute.events.card_alarms import Alarms
from accel_lab.compute.events.samples import HealthSampled
from accel_lab.telemetry import names
from accel_lab.telemetry.spans import Spans
from accel_lab.telemetry.tables import is_fault, told
from accel_lab.views.scene.scene import NEWS_TYPES


class Logs:
    """Writes a record for each fact of supervision, and of worlds."""

    def __init__(self, logger: Logger, spans: Spans) -> None:
        self._logger = logger
        self._spans = spans
        self._alarms = Alarms()

    def take(self, fact: Event) -> None:
        """Take one fact; of samples, those of a card that is not well are told."""
        if isinstance(fact, HealthSampled):
            for alarm in self._alarms.look(fact):
                self._emit(alarm, "WARN")
        elif isinstance(fact, NEWS_TYPES):
            self._emit(fact, "ERROR" if is_fault(fact) else "INFO")

    def _emit(self, fact: Event, severity: str) -> None:
        span = self._spans.cell_at(fact.at)
        self._logger.emit(
            LogRecord(
                timestamp=int(fact.at * 1e9),
                severity_number=SeverityNumber[severity],
                severity_text=severity,
                event_name=f"accel_lab.{type(fact).__name__}",
                body=f"{type(fact).__name__}: {told(fact)}",
                attributes=_attributes(fact),
                context=None if span is None else set_span_in_context(NonRecordingSpan(span)),
            )
        )


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
