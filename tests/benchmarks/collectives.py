"""Bus bandwidth of a world's collective operations, beside PyTorch's in processes of their own.

    python -m tests.benchmarks.collectives --ranks 4 --json collectives.json

Both are called in a loop on arrays that are there, and the end of the last call is waited for. The
bandwidth is counted as `nccl-tests` counts it. NVLink's multicast is off for both.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from accel_lab import System
from accel_lab.libraries import array
from accel_lab.world.flight import BUS_FACTORS
from accel_lab.world.world import World

CALLS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
LEAST, MOST = 4 << 10, 1 << 30
WARM_UP = 5
BYTES_A_LOOP = 8 << 30
LOOPS = (5, 100)
"""So often each is called, at least and at most."""
TORCH_S = 300
NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}


class Case(NamedTuple):
    """A call with an array of so many bytes: the larger one of operand and result."""

    call: str
    nbytes: int

    @property
    def loops(self) -> int:
        """How often it is called in a row."""
        least, most = LOOPS
        return max(least, min(most, BYTES_A_LOOP // self.nbytes))

    def bandwidth(self, seconds: float, ranks: int) -> float:
        """Return GB/s over the busiest link."""
        return self.nbytes * BUS_FACTORS[self.call](ranks) / seconds / 1e9


def cases(most: int) -> Iterator[Case]:
    """Yield all of them: each call from 4 KiB on, four times as much each time."""
    for call in CALLS:
        nbytes = LEAST
        while nbytes <= most:
            yield Case(call, nbytes)
            nbytes *= 4


def timed(call: Callable[[], Any], wait: Callable[[Any], object], loops: int) -> float:
    """Return how long one call takes in a row of them."""
    for _ in range(WARM_UP):
        made = call()
    wait(made)
    begin = time.perf_counter()
    for _ in range(loops):
        made = call()
    wait(made)
    return (time.perf_counter() - begin) / loops


def of_a_world(world: World, case: Case) -> float:
    """Return the seconds of one call of a world's."""
    ranks, elements = world.size, case.nbytes // 4
    part = elements // ranks

    def zeros(count: int) -> Any:
        return world.own([array.zeros(device, (count,), "float32") for device in world.devices])

    x = zeros(part if case.call == "all_gather" else elements)
    out = zeros(part if case.call == "reduce_scatter" else elements)
    method = getattr(world, case.call)
    return timed(lambda: method(x, out=out), lambda made: made.result(), case.loops)


def of_torch(rank: int, ranks: int, port: int, most: int) -> dict[str, float]:
    """Return the seconds of each call of torch.distributed's, as this rank sees it."""
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(rank)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("nccl", init_method=address, rank=rank, world_size=ranks)
    found = {}
    for case in cases(most):
        elements = case.nbytes // 4
        part = elements // ranks
        x = torch.zeros(part if case.call == "all_gather" else elements, device="cuda")
        out = torch.zeros(part if case.call == "reduce_scatter" else elements, device="cuda")
        calls: dict[str, Callable[[], Any]] = {
            "all_reduce": lambda: dist.all_reduce(out),  # noqa: B023 - called before the next one
            "all_gather": lambda: dist.all_gather_into_tensor(out, x),  # noqa: B023
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(out, x),  # noqa: B023
            "all_to_all": lambda: dist.all_to_all_single(out, x),  # noqa: B023
        }
        dist.barrier()
        seconds = timed(calls[case.call], lambda _: torch.cuda.synchronize(), case.loops)
        found[f"{case.call} {case.nbytes}"] = seconds
    dist.destroy_process_group()
    return found


def torch_processes(ranks: int, most: int) -> dict[str, float]:
    """Return what the slowest of PyTorch's ranks, each a process, says of each call."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.benchmarks.collectives", "--ranks", str(ranks)]
    command += ["--most", str(most), "--port", str(port), "--torch-rank"]
    environment = {**os.environ, **NO_MULTICAST}
    begun = [
        subprocess.Popen([*command, str(rank)], env=environment, stdout=subprocess.PIPE, text=True)
        for rank in range(ranks)
    ]
    try:
        told = [json.loads(one.communicate(timeout=TORCH_S)[0]) for one in begun]
    finally:
        for one in begun:
            one.kill()
    return {name: max(one[name] for one in told) for name in told[0]}


def row(case: Case, ranks: int, ours: float, theirs: float | None) -> dict[str, Any]:
    """Say what was measured of a case."""
    found: dict[str, Any] = {
        **case._asdict(),
        "seconds": ours,
        "bus_gb_s": case.bandwidth(ours, ranks),
    }
    if theirs is not None:
        found["torch_seconds"] = theirs
        found["torch_bus_gb_s"] = case.bandwidth(theirs, ranks)
        found["ratio"] = theirs / ours
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Write rows as Markdown; a ratio above 1 means that accel_lab was faster."""
    titles = ("call", "bytes", "accel_lab GB/s", "PyTorch GB/s", "ratio")
    lines = [f"| {' | '.join(titles)} |", "|---|---:|---:|---:|---:|"]
    for one in rows:
        theirs = f"{one['torch_bus_gb_s']:.3g}" if "ratio" in one else ""
        ratio = f"{one['ratio']:.2f}" if "ratio" in one else ""
        lines.append(
            f"| {one['call']} | {one['nbytes']} | {one['bus_gb_s']:.3g} | {theirs} | {ratio} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--backend", default="cuda", help="host has nobody to be compared with")
    parser.add_argument("--most", type=int, default=MOST, help="bytes of the largest array")
    parser.add_argument("--json", type=Path, help="where to write the rows")
    parser.add_argument("--torch-rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.update(NO_MULTICAST)
    if given.torch_rank is not None:
        found = of_torch(given.torch_rank, given.ranks, given.port, given.most)
        sys.stdout.write(json.dumps(found))
        return
    theirs = torch_processes(given.ranks, given.most) if given.backend == "cuda" else {}
    with System(given.backend, given.ranks) as lab:
        world = lab.world().ready()
        rows = []
        for case in cases(given.most):
            seconds = of_a_world(world, case)
            rows.append(row(case, given.ranks, seconds, theirs.get(f"{case.call} {case.nbytes}")))
        told = {"ranks": given.ranks, "with": world.capabilities, "rows": rows}
    if given.json is not None:
        given.json.write_text(json.dumps(told, indent=1))
    sys.stdout.write(table(rows) + "\n")


if __name__ == "__main__":
    main()
