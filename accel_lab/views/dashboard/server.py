"""What the dashboard's server answers beside the page, and to whom."""

import getpass
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from bokeh.server.auth_provider import AuthProvider
from bokeh.server.util import check_allowlist, create_hosts_allowlist
from tornado.web import HTTPError, RequestHandler

from accel_lab.views.dashboard.metrics import CONTENT_TYPE, exposition
from accel_lab.views.dashboard.peer_credentials import Visitors
from accel_lab.views.dashboard.watched import Watched

Route = tuple[str, type[RequestHandler], dict[str, Any]]
AUTOLOAD = "/autoload.js"
"""Where Bokeh hands out a session to be embedded in a page, to that of any site if it is let."""


class Guests:
    """Who may ask, and under which names of the server.

    The server asks nothing of a page whose origin is the name that was asked for, and who makes
    such a page can have a name of his own lead to this machine: so the name itself must be known.

    Parameters:
        hosts: the names, `host:port`; a `*` stands for any.
        visitors: the users of this machine.
    """

    def __init__(self, hosts: Sequence[str], visitors: Visitors) -> None:
        # Browsers leave out the port of https, as that of http, which is what Bokeh fills in.
        names = [host.lower() for host in hosts]
        plain = [name.removesuffix("443") + "80" for name in names if name.endswith(":443")]
        self.hosts = create_hosts_allowlist([*names, *plain], None)
        self._visitors = visitors

    async def require(self, handler: RequestHandler) -> str:
        """Return the name of who the page is for.

        Raises:
            HTTPError: 403, another user of the machine asks, or under a name that is not known, or
                a page of another site would embed this one.
        """
        connection: Any = handler.request.connection
        if not self._visitors.may_look(connection.stream.socket):
            raise HTTPError(403, reason=f"This page is for {getpass.getuser()}")
        if not check_allowlist(handler.request.host.lower(), self.hosts):
            raise HTTPError(403, reason="Not under this name: see --allow-websocket-origin")
        if handler.request.path.endswith(AUTOLOAD):
            self._require_own_page(handler)
        return getpass.getuser()

    def _require_own_page(self, handler: RequestHandler) -> None:
        """Refuse what a page of another site asks for; whoever is no browser names none."""
        headers = handler.request.headers
        # Of a page without a site the origin is `null`, and of a script there is only a referrer.
        pages = [page for page in (headers.get("Origin"), headers.get("Referer")) if page]
        is_own = all(check_allowlist(_host_of(page), self.hosts) for page in pages)
        if not is_own or headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise HTTPError(403, reason="Not in a page of another site")
        handler.clear_header("Access-Control-Allow-Origin")  # a page of its own needs no leave


def _host_of(page: str) -> str:
    """Return `host:port` of a page's address; a name that nobody has where it is none."""
    try:
        site = urlsplit(page)
        port = site.port or {"http": 80, "https": 443}.get(site.scheme, 0)
    except ValueError:
        return "-:0"
    return f"{site.hostname}:{port}"


class Doorkeeper(AuthProvider):
    """Refuses the page, and what keeps it live, to all but the guests."""

    def __init__(self, guests: Guests) -> None:
        self._guests = guests
        super().__init__()

    @property
    def get_user_async(self) -> Any:
        """What is asked for each request who asks; the server's thread."""
        return self._guests.require

    @property
    def login_url(self) -> str:
        """Where to log in: nobody is sent there."""
        return "/"


class Metrics(RequestHandler):
    """`/metrics`, for Prometheus."""

    def initialize(self, sources: Callable[[], list[Watched]], guests: Guests) -> None:
        """Take what the route gives."""
        self.sources, self.guests = sources, guests

    async def get(self) -> None:
        """Answer with the text."""
        await self.guests.require(self)
        self.set_header("Content-Type", CONTENT_TYPE)
        self.write(exposition(self.sources()))


def routes(sources: Callable[[], list[Watched]], guests: Guests) -> list[Route]:
    """Return the server's further routes."""
    return [("/metrics", Metrics, {"sources": sources, "guests": guests})]
