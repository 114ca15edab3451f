"""All benchmarks, one after another, in one run."""

from collections.abc import Callable, Collection

from accel_lab.bench import latency, pipelined, restarts, transfers, watched
from accel_lab.bench.effort import FULL, QUICK
from accel_lab.bench.machine import machine
from accel_lab.bench.peer import Peer
from accel_lab.bench.report import Report
from accel_lab.bench.row import Row, judged
from accel_lab.errors import InvalidArgument
from accel_lab.system import System

NAMES = (
    "gemm",
    "axpy",
    "matmul",
    "ask",
    "await",
    "upload",
    "download",
    "restart",
    "views",
)


def run(
    backend: str = "auto",
    *,
    quick: bool = False,
    only: Collection[str] = (),
    began: Callable[[str], object] = lambda _: None,
) -> Report:
    """Measure; blocks for a minute or two, or some seconds when `quick`.

    Parameters:
        only: the benchmarks to run, of `NAMES`; all when empty.
        began: called with a benchmark's name when it begins.

    Raises:
        InvalidArgument: there is no such benchmark.
        AccelError: the backend cannot run, or a benchmark failed.
    """
    unknown = sorted(set(only) - set(NAMES))
    if unknown:
        text = f"no benchmark is called {', '.join(unknown)}; there are {', '.join(NAMES)}"
        raise InvalidArgument(text)
    effort = QUICK if quick else FULL
    rows: list[Row] = []
    with System(backend, devices=1) as lab:
        peer = Peer(lab.devices[0], lab.backend)
        measures: dict[str, Callable[[], list[Row]]] = {
            "gemm": lambda: pipelined.gemm(peer, effort),
            "axpy": lambda: pipelined.axpy(peer, effort),
            "matmul": lambda: pipelined.matmul(peer, effort),
            "ask": lambda: latency.ask(peer, effort),
            "await": lambda: latency.await_(peer, effort),
            "upload": lambda: transfers.upload(lab, peer, effort),
            "download": lambda: transfers.download(lab, peer, effort),
            "restart": lambda: restarts.restart(lab.backend, effort),
            "views": lambda: watched.views(lab, peer, effort),
        }
        for name in NAMES:
            if name in only or not only:
                began(name)
                rows += map(judged, measures[name]())
        here = machine(peer, lab.tree().children[0].detail)
        return Report(backend=lab.backend, quick=quick, machine=here, rows=tuple(rows))
