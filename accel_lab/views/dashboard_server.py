"""What the dashboard's server answers beside the page, and to whom."""

import getpass
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bokeh.server.auth_provider import AuthProvider
from tornado.web import HTTPError, RequestHandler

from accel_lab.views.metrics import CONTENT_TYPE, exposition
from accel_lab.views.visitors import Visitors
from accel_lab.views.watched import Watched

Route = tuple[str, type[RequestHandler], dict[str, Any]]


class Doorkeeper(AuthProvider):
    """Refuses the page, and what keeps it live, to other users of the machine."""

    def __init__(self, visitors: Visitors) -> None:
        self._visitors = visitors
        super().__init__()

    @property
    def get_user_async(self) -> Any:
        """What is asked for each request who asks; the server's thread."""
        return partial(_require_welcome, self._visitors)

    @property
    def login_url(self) -> str:
        """Where to log in: nobody is sent there."""
        return "/"


class Metrics(RequestHandler):
    """`/metrics`, for Prometheus."""

    def initialize(
        self, sources: Callable[[], list[Watched]], hosts: Sequence[str], visitors: Visitors
    ) -> None:
        """Take what the route gives."""
        self.sources, self.hosts, self.visitors = sources, hosts, visitors

    async def get(self) -> None:
        """Answer with the text, unless a page of another site asks under a name of its own."""
        await _require_welcome(self.visitors, self)
        if self.request.host not in self.hosts and "*" not in self.hosts:
            raise HTTPError(403, "the host %s is not allowed", self.request.host)
        self.set_header("Content-Type", CONTENT_TYPE)
        self.write(exposition(self.sources()))


def routes(
    sources: Callable[[], list[Watched]], hosts: Sequence[str], visitors: Visitors
) -> list[Route]:
    """Return the server's further routes."""
    return [("/metrics", Metrics, {"sources": sources, "hosts": hosts, "visitors": visitors})]


async def _require_welcome(visitors: Visitors, handler: RequestHandler) -> str:
    """Return the name of who the page is for.

    Raises:
        HTTPError: 403, another user of the machine asks.
    """
    connection: Any = handler.request.connection
    if visitors.may_look(connection.stream.socket):
        return getpass.getuser()
    raise HTTPError(403, reason=f"This page is for {getpass.getuser()}")
