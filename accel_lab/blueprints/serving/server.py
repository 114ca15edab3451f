"""A deployment behind an address, in a thread that ends with its system."""

import socket
import threading
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from types import TracebackType
from typing import Self

from accel_lab.actor.actor import Actor
from accel_lab.blueprints.serving.deployment import Deployment
from accel_lab.blueprints.serving.errors import ServingUnavailable
from accel_lab.display.install import pip_install
from accel_lab.uncopied import Uncopied

PATIENCE_S = 5.0


class Door(Actor):
    """Stands in the tree for an endpoint, and ends it with the system."""

    def __init__(self, end: Callable[[], object]) -> None:
        self._end = end

    def stopped(self) -> None:
        """Have the server end."""
        self._end()


class Endpoint(Uncopied):
    """A deployment that clients reach.

    Attributes:
        url: for a client's `base_url`.
    """

    _instead = "it is one thread; share its url"

    def __init__(self, deployment: Deployment, listening: socket.socket) -> None:
        import uvicorn

        from accel_lab.blueprints.serving.http import application

        self.deployment = deployment
        host, port, *_ = listening.getsockname()
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"
        config = uvicorn.Config(
            application(deployment),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._door = deployment.lab.spawn(partial(Door, self._end))
        self._thread = threading.Thread(
            target=self._server.run, args=([listening],), name=f"serve {self.url}", daemon=True
        )
        self._thread.start()

    def _end(self) -> None:
        self._server.should_exit = True

    def close(self) -> None:
        """Stop listening; what is being answered has a second. Blocks; safe to repeat."""
        self._end()
        self._door.stop()
        self._thread.join(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Endpoint {self.url}, {self.deployment.models}>"


def serve(deployment: Deployment, *, host: str = "127.0.0.1", port: int = 0) -> Endpoint:
    """Open a deployment to OpenAI's clients, each with the token of its tenant.

    It ends with its system, if it is not closed before.

    Parameters:
        host: the address on which it listens: of this machine alone when not given.
        port: 0 for a free one.

    Raises:
        ServingUnavailable: a package of the extra `serving` is not installed.
        OSError: the port is taken.
    """
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            text = f"serving needs {package}. Install it with: {pip_install('serving')}"
            raise ServingUnavailable(text)
    return Endpoint(deployment, socket.create_server((host, port)))
