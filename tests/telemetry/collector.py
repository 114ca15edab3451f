"""An OTLP/HTTP collector: a server that reads the protocol's own messages and keeps them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

KINDS: dict[str, tuple[Any, Any]] = {
    "/v1/traces": (ExportTraceServiceRequest, ExportTraceServiceResponse),
    "/v1/logs": (ExportLogsServiceRequest, ExportLogsServiceResponse),
    "/v1/metrics": (ExportMetricsServiceRequest, ExportMetricsServiceResponse),
}


def plain(attributes: Any) -> dict[str, Any]:
    """Return attributes as plain values."""
    return {
        one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value")
        for one in attributes
    }


class Collector:
    """What has arrived: spans, logs and metrics, each with the resource that it is of."""

    def __init__(self) -> None:
        self.spans: list[tuple[dict[str, Any], Any]] = []
        self.logs: list[tuple[dict[str, Any], Any]] = []
        self.metrics: dict[str, Any] = {}
        self.headers: list[Any] = []
        self.endpoint = ""

    def take(self, path: str, request: Any) -> None:
        if path == "/v1/traces":
            for one in request.resource_spans:
                resource = plain(one.resource.attributes)
                self.spans += [(resource, span) for sc in one.scope_spans for span in sc.spans]
        elif path == "/v1/logs":
            for one in request.resource_logs:
                resource = plain(one.resource.attributes)
                self.logs += [(resource, log) for sc in one.scope_logs for log in sc.log_records]
        else:
            for one in request.resource_metrics:
                for scope in one.scope_metrics:
                    self.metrics |= {metric.name: metric for metric in scope.metrics}

    def named(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        return [(resource, span) for resource, span in self.spans if span.name == name]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Serve a collector on a free port of the loopback interface."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            takes, answers = KINDS[self.path]
            request = takes()
            request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
            collector.headers.append(self.headers)
            collector.take(self.path, request)
            body = answers().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing on the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
