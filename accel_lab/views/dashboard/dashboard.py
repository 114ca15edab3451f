"""A web page that shows running systems as JupyterLab does, served by Panel.

`accel-lab dashboard` shows those of every process of this user, `dashboard(lab)` one of this
process. It can be looked at only: no button of it acts on a system.
"""

import asyncio
import errno
import logging
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from importlib.util import find_spec
from typing import Any, Self

from accel_lab.display.install import pip_install
from accel_lab.errors import DashboardUnavailable, InvalidArgument
from accel_lab.uncopied import Uncopied
from accel_lab.views.canvas.player import Player
from accel_lab.views.canvas.view import players_of
from accel_lab.views.dashboard.peer_credentials import Visitors
from accel_lab.views.dashboard.watched import Onlooker, Watched
from accel_lab.views.feed.client import Watch
from accel_lab.views.lab import LabView
from accel_lab.views.scene.observer import Lab, Source

STARTS_WITHIN_S = 60.0
WAKES_EVERY_S = 0.5
"""Ctrl-C may reach another thread, and Python heeds it when the main one wakes."""
PORTS = range(1 << 16)
LOOPBACK = ("127.0.0.1", "localhost")


class Dashboard(Uncopied):
    """A server in a thread of its own, until it is closed.

    Parameters:
        sources: returns the systems to be shown; called in the server's thread.
        port: where to listen; 0 for any that is free.
        address: of the network interface.
        origins: hosts under which browsers may reach it, `host:port`, beside its address and those
            of the loopback interface. Under any other it answers nothing.
        users: other users of this machine who may look, beside the one of this process and root.
        players: returns what plays the canvases of this process that are to be shown.

    Raises:
        DashboardUnavailable: Panel is missing, or the port is taken.
        InvalidArgument: there is no such user, or no such port.
    """

    def __init__(
        self,
        sources: Callable[[], list[Watched]],
        *,
        port: int = 0,
        address: str = "127.0.0.1",
        origins: Sequence[str] = (),
        users: Sequence[str] = (),
        players: Callable[[], list[Player]] = list,
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        missing = [name for name in ("panel", "prometheus_client") if find_spec(name) is None]
        if missing:
            raise DashboardUnavailable(
                f"a dashboard needs {' and '.join(missing)}: {pip_install('lab')}"
            )
        if port not in PORTS:
            raise InvalidArgument(f"a port is from 0 to {PORTS[-1]}, not {port}")
        self._visitors = Visitors(users)
        self.port = _free_port(address, port)
        self.address = address
        hosts = dict.fromkeys((*LOOPBACK, address or LOOPBACK[0]))
        self.origins = [*(f"{host}:{self.port}" for host in hosts), *origins]
        self._sources, self._players, self._closing = sources, players, closing
        self._started = threading.Event()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._closed = False
        self._stop: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="accel_lab dashboard", daemon=True)
        try:
            self._thread.start()
            if not self._started.wait(STARTS_WITHIN_S):
                self._error = TimeoutError(f"it was not up within {STARTS_WITHIN_S:g} s")
        except BaseException:  # as Ctrl-C: nobody else can close it
            self.close()
            raise
        if self._error is not None:
            self._closed = True  # what comes up after all stops itself
            raise DashboardUnavailable(
                f"no dashboard at {address}:{self.port}: {self._error}"
            ) from self._error

    @property
    def url(self) -> str:
        """Where it is; metrics are at `metrics` below that."""
        host = "127.0.0.1" if self.address in {"0.0.0.0", ""} else self.address  # noqa: S104
        return f"http://{host}:{self.port}/"

    def close(self) -> None:
        """Stop serving and wait for the thread; safe to repeat."""
        self._closed = True
        self._stop()
        if self._thread.is_alive():
            self._thread.join()
        self._closing()

    def wait(self) -> None:
        """Block until it is closed."""
        while not self._ended.wait(WAKES_EVERY_S):
            pass

    def _run(self) -> None:
        log = logging.getLogger("tornado.application")
        log.addFilter(_is_no_answer_cut_off)
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 - raised by the constructor
            self._error = error
        finally:
            log.removeFilter(_is_no_answer_cut_off)
            self._started.set()
            self._ended.set()

    async def _serve(self) -> None:
        from panel.io.server import get_server

        from accel_lab.views.dashboard.page import Desk, page
        from accel_lab.views.dashboard.server import Doorkeeper, Guests, routes

        desk = Desk(self._sources, LabView, self._players)
        guests = Guests(self.origins, self._visitors)
        server: Any = get_server(
            {"/": lambda: page(desk)},
            port=self.port,
            address=self.address,
            websocket_origin=guests.hosts,
            extra_patterns=routes(self._sources, guests),
            auth_provider=Doorkeeper(guests),
            title="accel_lab",
        )
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(_pass_over_closed_pages)
        self._stop = partial(_call, loop, over.set)
        server.start()
        self._started.set()
        if not self._closed:  # before there was anything to stop
            await over.wait()
        server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Dashboard {self.url}>"

    def _repr_html_(self) -> str:
        url = escape(self.url)
        return f'<a href="{url}" target="_blank" rel="noopener">Dashboard: {url}</a>'


def dashboard(
    lab: Lab | Source,
    *,
    port: int = 0,
    origins: Sequence[str] = (),
    users: Sequence[str] = (),
) -> Dashboard:
    """Serve the page of one system from this process; display it as the last value of a cell.

    Returns once it serves. `.url` is where, `.close()` ends it. Below the system it shows every
    canvas of a simulation that is open.

    Parameters:
        lab: the system, or a recording of one.
        port: where to listen, on the loopback interface; 0 for any that is free.
        origins: other hosts under which browsers may reach it, as `hub.example.org:443`.
        users: other users of this machine who may look.

    Raises:
        DashboardUnavailable: Panel is missing, or the port is taken.
        InvalidArgument: there is no such user, or no such port.
    """
    onlooker = Onlooker(lab, getattr(lab, "name", "system"))
    return Dashboard(
        lambda: [onlooker],
        port=port,
        origins=origins,
        users=users,
        players=lambda: players_of(lab),
    )


def dashboard_of_all(
    *,
    port: int,
    address: str = "127.0.0.1",
    origins: Sequence[str] = (),
    users: Sequence[str] = (),
) -> Dashboard:
    """Serve the page of all systems of this user, those that begin later too.

    Raises:
        DashboardUnavailable: Panel is missing, or the port is taken.
        InvalidArgument: there is no such user, or no such port.
    """
    watch = Watch()
    try:
        return Dashboard(
            lambda: list(watch.sources()),
            port=port,
            address=address,
            origins=origins,
            users=users,
            closing=watch.close,
        )
    except BaseException:
        watch.close()
        raise


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(what)


def _pass_over_closed_pages(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say nothing of a page that was closed while something was on its way to it."""
    from tornado.websocket import WebSocketClosedError

    if not isinstance(context.get("exception"), WebSocketClosedError):
        loop.default_exception_handler(context)


def _is_no_answer_cut_off(record: logging.LogRecord) -> bool:
    """Pass over what was on its way to a page when the dashboard was closed."""
    return record.exc_info is None or record.exc_info[0] is not asyncio.CancelledError


def _free_port(address: str, port: int) -> int:
    """Return the port if nobody listens there, or any such port for 0."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            taken = ": port 0 is any that is free" if error.errno == errno.EADDRINUSE else ""
            text = f"no dashboard at {address}:{port}: {error}{taken}"
            raise DashboardUnavailable(text) from error
        found: int = probe.getsockname()[1]
        return found
