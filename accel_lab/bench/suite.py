"""All benchmarks, one after another, in one run."""

from collections.abc import Callable, Collection, Iterable
from functools import partial

from accel_lab.bench.effort import FULL, QUICK
from accel_lab.bench.machine import machine
from accel_lab.bench.peer import Peer
from accel_lab.bench.report import Report
from accel_lab.bench.row import Row, judged
from accel_lab.bench.rows import (
    busy,
    compiling,
    completion,
    eager,
    empty,
    journaled,
    latency,
    libraries,
    pipelined,
    rebuilt,
    restarts,
    transfers,
    watched,
    workloads,
)
from accel_lab.errors import CompileError, InvalidArgument
from accel_lab.system import System

NAMES = (
    "gemm",
    "axpy",
    "matmul",
    "eager",
    "ask",
    "await",
    "ping",
    "completion",
    "busy",
    *libraries.CASES,
    "libraries",
    "compile",
    "upload",
    "download",
    "restart",
    "rebuilt",
    "views",
    "journal",
)


def run(
    backend: str = "auto",
    *,
    quick: bool = False,
    only: Collection[str] = (),
    began: Callable[[str], object] = lambda _: None,
) -> Report:
    """Measure; blocks for ten minutes, or less than one when `quick`.

    An interrupt ends it with what has been measured by then.

    Parameters:
        only: the benchmarks to run, of `NAMES`; all of them when empty.
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
    notes: list[str] = []
    with System(backend, devices=1) as lab:
        peer = Peer(lab.devices[0], lab.backend)
        measures: dict[str, Callable[[], Iterable[Row]]] = {
            "gemm": lambda: pipelined.gemm(peer, effort),
            "axpy": lambda: pipelined.axpy(peer, effort),
            "matmul": lambda: pipelined.matmul(peer, effort),
            "eager": lambda: eager.eager(peer, effort),
            "ask": lambda: latency.ask(peer, effort),
            "await": lambda: latency.await_(peer, effort),
            "ping": lambda: empty.ping(peer.device, effort),
            "completion": lambda: completion.completion(lab.backend, effort),
            "busy": lambda: busy.busy(peer, effort),
            **{name: partial(libraries.library, peer, effort, name) for name in libraries.CASES},
            "libraries": lambda: workloads.workloads(peer, effort, notes.append),
            "compile": lambda: compiling.compiling(lab.backend, effort),
            "upload": lambda: transfers.upload(lab, peer, effort),
            "download": lambda: transfers.download(lab, peer, effort),
            "restart": lambda: restarts.restart(lab.backend, effort),
            "rebuilt": lambda: rebuilt.rebuilt(peer, effort),
            "views": lambda: watched.views(lab, peer, effort),
            "journal": lambda: journaled.journal(lab.backend, effort),
        }
        order = [name for name in NAMES if name in (only or NAMES)]
        for position, name in enumerate(order):
            try:
                began(name)
                rows += map(judged, measures[name]())  # each as it comes: those stay
            except CompileError as error:  # the host's kernels need a C++ compiler
                notes.append(f"{name} is not measured: {error}")
            except KeyboardInterrupt:
                if not rows:
                    raise
                notes.append(f"interrupted: {', '.join(order[position:])} not measured")
                break
        return Report(
            backend=lab.backend,
            quick=quick,
            machine=machine(peer, lab.tree().children[0].detail),
            rows=tuple(rows),
            notes=tuple(notes),
        )
