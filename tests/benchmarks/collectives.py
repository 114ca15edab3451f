"""Bus bandwidth of a world's collective operations beside PyTorch's, and copies beside the raw one.

    python -m tests.benchmarks.collectives --ranks 4 --json collectives.json
    python -m tests.benchmarks.collectives --goals

Both are called in a loop on arrays that are there, and the end of the last call is waited for. The
bandwidth is counted as `nccl-tests` counts it. NVLink's multicast is off for both. PyTorch is in
processes of its own, with NCCL, or with Gloo on `host`. A copy goes from the first card to the
second one, and so does `cudaMemcpyPeer`, in another process; on `host` it has nobody beside it.
`--goals` measures only what has a goal, in a minute or two.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from accel_lab import System
from accel_lab.libraries import array
from accel_lab.world.flight import BUS_FACTORS
from accel_lab.world.world import World

CALLS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
LEAST, LARGE, MOST = 4 << 10, 64 << 20, 1 << 30
COPY = "peer copy"
COPY_ROUNDS = 5
SMALL_GOAL, LARGE_GOAL, COPY_GOAL = 0.667, 1.0, 0.95
"""Of the ratio: 1.5 of PyTorch's time for a small call, all of its bandwidth for a large one."""
WARM_UP = 5
BYTES_A_LOOP = 8 << 30
LOOPS = (5, 100)
"""So often each is called, at least and at most."""
PEER_S = 300
"""So long a peer's process may take."""
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
        factor = 1.0 if self.call == COPY else BUS_FACTORS[self.call](ranks)
        return self.nbytes * factor / seconds / 1e9

    @property
    def goal(self) -> float | None:
        """The least ratio that we want; None where it is not said."""
        if self.call == COPY:
            return COPY_GOAL
        if self.nbytes >= LARGE:
            return LARGE_GOAL
        return SMALL_GOAL if self == ("all_reduce", LEAST) else None


def cases(most: int, *, goals: bool = False) -> Iterator[Case]:
    """Yield each call from 4 KiB on, four times as much each time; or only what has a goal."""
    for call in CALLS:
        nbytes = LEAST
        while nbytes <= most:
            case = Case(call, nbytes)
            if case.goal is not None or not goals:
                yield case
            nbytes *= 4


def copies(most: int) -> list[Case]:
    """Return a large copy and a larger one."""
    return [Case(COPY, nbytes) for nbytes in sorted({min(LARGE, most), most})]


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


def of_copies(lab: System, case: Case) -> float:
    """Return the seconds of a copy from the first device to the second, the fastest of some."""
    lab.topology.direct = True
    figure = lab.topology.measure(case.nbytes, rounds=COPY_ROUNDS).bandwidth(0, 1)
    assert figure is not None
    return case.nbytes / figure.gb_per_s / 1e9


def of_torch(rank: int, given: argparse.Namespace) -> dict[str, float]:
    """Return the seconds of each call of torch.distributed's, as this rank sees it."""
    import torch
    import torch.distributed as dist

    on_card = given.backend == "cuda"
    device = f"cuda:{rank}" if on_card else "cpu"
    if on_card:
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(1)
    dist.init_process_group(
        "nccl" if on_card else "gloo",
        init_method=f"tcp://127.0.0.1:{given.port}",
        rank=rank,
        world_size=given.ranks,
    )
    found = {}
    for case in cases(given.most, goals=given.goals):
        elements = case.nbytes // 4
        part = elements // given.ranks
        x = torch.zeros(part if case.call == "all_gather" else elements, device=device)
        out = torch.zeros(part if case.call == "reduce_scatter" else elements, device=device)
        calls: dict[str, Callable[[], Any]] = {
            "all_reduce": lambda: dist.all_reduce(out),  # noqa: B023 - called before the next one
            "all_gather": lambda: dist.all_gather_into_tensor(out, x),  # noqa: B023
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(out, x),  # noqa: B023
            "all_to_all": lambda: dist.all_to_all_single(out, x),  # noqa: B023
        }
        dist.barrier()
        wait = torch.cuda.synchronize if on_card else lambda: None
        seconds = timed(calls[case.call], lambda _: wait(), case.loops)  # noqa: B023
        found[f"{case.call} {case.nbytes}"] = seconds
    dist.destroy_process_group()
    return found


def of_raw_copies(most: int) -> dict[str, float]:
    """Return the seconds of each copy by the driver's own call, the fastest of some."""
    from cupy.cuda import runtime

    found = {}
    runtime.setDevice(1)
    target = runtime.malloc(most)
    runtime.setDevice(0)
    source = runtime.malloc(most)
    if runtime.deviceCanAccessPeer(0, 1):
        runtime.deviceEnablePeerAccess(1)
    for case in copies(most):
        taken = []
        for _ in range(1 + COPY_ROUNDS):
            begin = time.perf_counter()
            runtime.memcpyPeer(target, 1, source, 0, case.nbytes)
            runtime.deviceSynchronize()
            taken.append(time.perf_counter() - begin)
        found[f"{case.call} {case.nbytes}"] = min(taken[1:])
    return found


def of_peers(given: argparse.Namespace) -> dict[str, float]:
    """Return what processes of their own say: the slowest of PyTorch's ranks, and the raw copy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = ["--backend", given.backend, "--ranks", str(given.ranks), "--most", str(given.most)]
    common += ["--port", str(port), *(["--goals"] if given.goals else [])]
    told = told_by([[*common, "--torch-rank", str(rank)] for rank in range(given.ranks)])
    found = {name: max(one[name] for one in told) for name in told[0]}
    if given.backend == "cuda" and given.ranks > 1:
        found |= told_by([[*common, "--raw-copies"]])[0]
    return found


def told_by(processes: Sequence[Sequence[str]]) -> list[dict[str, float]]:
    """Return what each of some processes of this program writes, which run together."""
    command = [sys.executable, "-m", "tests.benchmarks.collectives"]
    environment = {**os.environ, **NO_MULTICAST}
    begun = [
        subprocess.Popen([*command, *one], env=environment, stdout=subprocess.PIPE, text=True)
        for one in processes
    ]
    try:
        return [json.loads(one.communicate(timeout=PEER_S)[0]) for one in begun]
    finally:
        for one in begun:
            one.kill()


def row(case: Case, ranks: int, ours: float, theirs: float | None) -> dict[str, Any]:
    """Say what was measured of a case."""
    found: dict[str, Any] = {
        **case._asdict(),
        "seconds": ours,
        "bus_gb_s": case.bandwidth(ours, ranks),
    }
    if theirs is not None:
        found["peer_seconds"] = theirs
        found["peer_gb_s"] = case.bandwidth(theirs, ranks)
        found["ratio"] = theirs / ours
        if case.goal is not None:
            found["goal"] = case.goal
            found["met"] = found["ratio"] >= case.goal
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Write rows as Markdown; a ratio above 1 means that accel_lab was faster."""
    titles = ("call", "bytes", "accel_lab GB/s", "peer's GB/s", "ratio", "goal", "met")
    lines = [f"| {' | '.join(titles)} |", "|---|---:|---:|---:|---:|---:|---|"]
    for one in rows:
        cells = [one["call"], str(one["nbytes"]), f"{one['bus_gb_s']:.3g}"]
        cells.append(f"{one['peer_gb_s']:.3g}" if "ratio" in one else "")
        cells.append(f"{one['ratio']:.2f}" if "ratio" in one else "")
        cells.append(f"≥ {one['goal']:.3g}" if "goal" in one else "")
        cells.append(("yes" if one["met"] else "**no**") if "met" in one else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--backend", default="cuda", choices=("cuda", "host"))
    parser.add_argument("--most", type=int, default=MOST, help="bytes of the largest array")
    parser.add_argument("--goals", action="store_true", help="only what has a goal")
    parser.add_argument("--json", type=Path, help="where to write the rows")
    parser.add_argument("--torch-rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--raw-copies", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    os.environ.update(NO_MULTICAST)
    if given.torch_rank is not None or given.raw_copies:
        is_copy = given.raw_copies
        found = of_raw_copies(given.most) if is_copy else of_torch(given.torch_rank, given)
        sys.stdout.write(json.dumps(found))
        return 0
    theirs = of_peers(given)
    with System(given.backend, given.ranks) as lab:
        world = lab.world().ready()
        measured = [
            (case, of_a_world(world, case)) for case in cases(given.most, goals=given.goals)
        ]
        if given.ranks > 1:
            measured += [(case, of_copies(lab, case)) for case in copies(given.most)]
        rows = [
            row(case, given.ranks, seconds, theirs.get(f"{case.call} {case.nbytes}"))
            for case, seconds in measured
        ]
        told = {"ranks": given.ranks, "with": world.capabilities, "rows": rows}
    if given.json is not None:
        given.json.write_text(json.dumps(told, indent=1))
    sys.stdout.write(table(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
