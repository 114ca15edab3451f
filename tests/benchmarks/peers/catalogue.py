"""The actor systems we compare with, and how much faster the design wants to be."""

from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from tests.benchmarks.peers.runtime import Runtime


class Peer(NamedTuple):
    """An actor system, found without importing it.

    Attributes:
        name: what rows and the command line call it.
        package: what pip installs, and the module that a `Runtime` needs.
        title: for people: where its actor lives.
        runtime: the class in this folder's module called `package`.
        ask: how many times faster our ask should be; None where it is for information.
        tell: how many times as many messages we should deliver in a second; None likewise.
        needs: what must be installed beside the package for it to be imported.
    """

    name: str
    package: str
    title: str
    runtime: str
    ask: float | None = None
    tell: float | None = None
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """What has to be installed first."""
        return tuple(one for one in (self.package, *self.needs) if find_spec(one) is None)

    def make(self) -> Runtime:
        """Make the runtime; where the package is missing, only its `start` fails."""
        module = import_module(f"tests.benchmarks.peers.{self.package}")
        runtime: Runtime = getattr(module, self.runtime)()
        return runtime


PEERS = (
    Peer("pykka", "pykka", "pykka thread, get() in an executor", "InExecutor", 5, 3),
    Peer("pykka-await", "pykka", "pykka thread, await that blocks the loop", "Awaited"),
    Peer("xoscar", "xoscar", "xoscar process", "SubPool", 10, 20),
    Peer("ray", "ray", "Ray process", "Local", 100, 100),
    Peer("atomr", "atomr", "atomr thread", "Pinned", 10, 50, needs=("pytest",)),
    Peer("distributed", "distributed", "Dask process", "Cluster"),
)


def peer_of(name: str) -> Peer:
    """Look a peer up.

    Raises:
        KeyError: there is none of this name.
    """
    return {peer.name: peer for peer in PEERS}[name]
