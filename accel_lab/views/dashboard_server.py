"""What the dashboard's server answers beside the page."""

from collections.abc import Callable, Sequence
from typing import Any

from tornado.web import HTTPError, RequestHandler

from accel_lab.views.metrics import CONTENT_TYPE, exposition
from accel_lab.views.watched import Watched

Route = tuple[str, type[RequestHandler], dict[str, Any]]


class Metrics(RequestHandler):
    """`/metrics`, for Prometheus."""

    def initialize(self, sources: Callable[[], list[Watched]], hosts: Sequence[str]) -> None:
        """Take what the route gives."""
        self.sources, self.hosts = sources, hosts

    def get(self) -> None:
        """Answer with the text, unless a page of another site asks under a name of its own."""
        if self.request.host not in self.hosts and "*" not in self.hosts:
            raise HTTPError(403, "the host %s is not allowed", self.request.host)
        self.set_header("Content-Type", CONTENT_TYPE)
        self.write(exposition(self.sources()))


def routes(sources: Callable[[], list[Watched]], hosts: Sequence[str]) -> list[Route]:
    """Return the server's further routes."""
    return [("/metrics", Metrics, {"sources": sources, "hosts": hosts})]
