"""OpenTelemetry's SDK, put together: three signals over OTLP/HTTP, off the threads that work."""

from collections.abc import Mapping
from typing import Any

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from accel_lab.telemetry.names import PID

TIMEOUT_S = 5.0
"""How long a collector may take for one batch; what it does not take then is dropped and logged."""
QUEUE = 65_536
"""So many spans wait at most; more are dropped, and nobody waits for a collector."""
METRICS_EVERY_MS = 10_000.0


class Signals:
    """Where spans, log records and metrics go.

    Parameters:
        endpoint: the collector's address; that of the environment when not given.
        headers: sent with each batch.
        resource: what is true of the notebook's process; `OTEL_RESOURCE_ATTRIBUTES` goes before it.
    """

    def __init__(
        self,
        endpoint: str | None,
        headers: Mapping[str, str] | None,
        resource: Mapping[str, Any],
    ) -> None:
        def options(signal: str) -> dict[str, Any]:
            where = None if endpoint is None else f"{endpoint.rstrip('/')}/v1/{signal}"
            return {"endpoint": where, "headers": headers, "timeout": TIMEOUT_S}

        here = _resource(resource)
        self._shared = {name: value for name, value in resource.items() if name != PID}
        self._spans = BatchSpanProcessor(OTLPSpanExporter(**options("traces")), QUEUE)
        self.traces = self._provider(here)
        self.logs = LoggerProvider(here, shutdown_on_exit=False)
        self.logs.add_log_record_processor(
            BatchLogRecordProcessor(OTLPLogExporter(**options("logs")))
        )
        exporter = OTLPMetricExporter(**options("metrics"))
        reader = PeriodicExportingMetricReader(exporter, METRICS_EVERY_MS)
        self.metrics = MeterProvider([reader], here, shutdown_on_exit=False)

    def provider(self, attributes: Mapping[str, Any]) -> TracerProvider:
        """Return what makes spans of another process, by what is true of that one."""
        return self._provider(_resource({**self._shared, **attributes}))

    def flush(self) -> None:
        """Send what waits; blocks for the collector."""
        self._spans.force_flush()
        self.logs.force_flush()
        self.metrics.force_flush()

    def close(self) -> None:
        """Send what waits and end; blocks for the collector."""
        self._spans.shutdown()
        self.logs.shutdown()
        self.metrics.shutdown()

    def _provider(self, resource: Resource) -> TracerProvider:
        made = TracerProvider(resource=resource, shutdown_on_exit=False)
        made.add_span_processor(self._spans)
        return made


def _resource(attributes: Mapping[str, Any]) -> Resource:
    return Resource.create(attributes).merge(OTELResourceDetector().detect())
