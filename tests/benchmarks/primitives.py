"""Rates of the primitives, beside bare cuda.compute and CuPy, or beside NumPy on the host.

    python -m tests.benchmarks.primitives --backend cuda --elements 10000000 --json primitives.json

Each is called in a loop on an array that is there, and the end of the last call is waited for. A
rate counts what is read and written at least. The peers run in a process of their own, on the same
device, before accel_lab opens it.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accel_lab import System, primitives
from accel_lab.compute.device import Device

WARM_UP = 3
PEERS_S = 900
BINS = 256
SEGMENTS = 1000
POSITIVE = "template <class T> __device__ bool positive(T a) { return a > 0; }"


class Case(NamedTuple):
    """A call.

    Attributes:
        passes: how often each element is read or written.
    """

    call: str
    dtype: str
    passes: int


CASES = [
    Case(call, dtype, passes)
    for call, passes in (
        ("reduce", 1),
        ("scan", 2),
        ("sort", 2),
        ("histogram", 1),
        ("segmented_reduce", 1),
        ("select", 2),
    )
    for dtype in ("int32", "float32")
]


def sample(case: Case, elements: int) -> tuple[Any, Any]:
    """Return what is computed with: numbers around 0, and offsets."""
    rng = np.random.default_rng(0)
    x = rng.integers(-(2**20), 2**20, elements).astype(case.dtype)
    return x, np.linspace(0, elements, SEGMENTS + 1).astype("int64")


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


def of_accel_lab(device: Device, case: Case, elements: int, loops: int) -> float:
    """Return the seconds of one message."""
    x, offsets = map(device.put, sample(case, elements))
    calls: dict[str, Callable[[], Any]] = {
        "reduce": lambda: primitives.reduce(x),
        "scan": lambda: primitives.scan(x),
        "sort": lambda: primitives.sort(x),
        "histogram": lambda: primitives.histogram_even(x, BINS, -(2**20), 2**20),
        "segmented_reduce": lambda: primitives.segmented_reduce(x, offsets),
        "select": lambda: primitives.select(x, op="positive", source=POSITIVE),
    }
    return timed(calls[case.call], lambda made: made.result(), loops)


def of_numpy(case: Case, elements: int, loops: int) -> dict[str, float]:
    """Return the seconds of one call of NumPy's."""
    x, offsets = sample(case, elements)
    calls: dict[str, Callable[[], Any]] = {
        "reduce": x.sum,
        "scan": lambda: np.cumsum(x, dtype=x.dtype),
        "sort": lambda: np.sort(x, kind="stable"),
        "histogram": lambda: np.histogram(x, BINS, (-(2**20), 2**20)),
        "segmented_reduce": lambda: np.add.reduceat(x, offsets[:-1]),
        "select": lambda: x[x > 0],
    }
    return {"numpy": timed(calls[case.call], lambda _: None, loops)}


def of_cupy(case: Case, elements: int, loops: int) -> dict[str, float]:
    """Return the seconds of one bare call of cuda.compute's, and of CuPy's own."""
    import cupy

    x, offsets = map(cupy.asarray, sample(case, elements))
    calls: dict[str, Callable[[], Any]] = {
        "reduce": x.sum,
        "scan": lambda: cupy.cumsum(x, dtype=x.dtype),
        "sort": lambda: cupy.sort(x),
        "histogram": lambda: cupy.histogram(x, BINS, (-(2**20), 2**20)),
        "select": lambda: x[x > 0],
    }

    def wait(_: Any) -> None:
        cupy.cuda.runtime.deviceSynchronize()

    found = {"cuda.compute": timed(bare(case, x, offsets), wait, loops)}
    if case.call in calls:
        found["cupy"] = timed(calls[case.call], wait, loops)
    return found


def bare(case: Case, x: Any, offsets: Any) -> Callable[[], Any]:
    """Return a call of an algorithm of cuda.compute's that is built, with memory that is there."""
    import cupy
    from cuda import compute
    from cuda.compute.op import OpKind, RawOp
    from cuda.core import Program, ProgramOptions

    n, dtype = x.size, x.dtype
    out, zero, total = cupy.empty_like(x), np.zeros(1, dtype), cupy.empty(1, cupy.int64)
    if case.call == "reduce":
        given = {"d_in": x, "d_out": out[:1], "op": OpKind.PLUS, "h_init": zero}
        return with_scratch(compute.make_reduce_into(**given), {**given, "num_items": n})
    if case.call == "scan":
        given = {"d_in": x, "d_out": out, "op": OpKind.PLUS, "init_value": None}
        return with_scratch(compute.make_inclusive_scan(**given), {**given, "num_items": n})
    if case.call == "sort":
        given = dict.fromkeys(("d_in_values", "d_out_values")) | {"d_in_keys": x, "d_out_keys": out}
        made = compute.make_radix_sort(**given, order=compute.SortOrder.ASCENDING)
        return with_scratch(made, {**given, "num_items": n})
    if case.call == "histogram":
        levels = {
            "h_num_output_levels": np.array([BINS + 1], np.int32),
            "h_lower_level": np.array([-(2**20)], dtype),
            "h_upper_level": np.array([2**20], dtype),
        }
        given = {"d_samples": x, "d_histogram": cupy.empty(BINS, cupy.int32), "num_samples": n}
        return with_scratch(compute.make_histogram_even(**given, **levels), {**given, **levels})
    if case.call == "segmented_reduce":
        parts = {"start_offsets_in": offsets[:-1].copy(), "end_offsets_in": offsets[1:].copy()}
        given = {"d_in": x, "d_out": out, "op": OpKind.PLUS, "h_init": zero, **parts}
        made = compute.make_segmented_reduce(**given)
        return with_scratch(made, {**given, "num_segments": SEGMENTS})
    kind = "int" if dtype.kind == "i" else "float"
    source = (
        f'extern "C" __device__ void positive(void* a, void* r) {{ *(bool*)r = *({kind}*)a > 0; }}'
    )
    arch = f"sm_{cupy.cuda.Device().compute_capability}"
    options = ProgramOptions(arch=arch, link_time_optimization=True)
    code = Program(source, "c++", options).compile("ltoir").code
    given = {
        "d_in": x,
        "d_out": out,
        "d_num_selected_out": total,
        "cond": RawOp(ltoir=code, name="positive"),
    }
    return with_scratch(compute.make_select(**given), {**given, "num_items": n})


def with_scratch(algorithm: Any, given: dict[str, Any]) -> Callable[[], Any]:
    """Return a call of an algorithm with the memory that it wants."""
    import cupy

    nbytes = algorithm(temp_storage=None, **given)
    scratch = cupy.empty(max(nbytes, 1), cupy.uint8)
    return lambda: algorithm(temp_storage=scratch, **given)


def peers(backend: str, elements: int, loops: int) -> list[dict[str, float]]:
    """Return what the peers take for each case, measured in a process of their own."""
    command = [sys.executable, "-m", "tests.benchmarks.primitives", "--peers"]
    command += ["--backend", backend, "--elements", str(elements), "--loops", str(loops)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PEERS_S, check=True)
    found: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Write rows as Markdown: GB/s, and ratios above 1 where accel_lab was faster."""
    names = [name for name in ("cuda.compute", "cupy", "numpy") if any(name in r for r in rows)]
    titles = ["call", "dtype", "accel_lab GB/s"]
    for name in names:
        titles += [f"{name} GB/s", "ratio"]
    lines = [f"| {' | '.join(titles)} |", f"|---|---{'|---:' * (len(titles) - 2)}|"]
    for row in rows:
        cells = [row["call"], row["dtype"], f"{row['nbytes'] / row['seconds'] / 1e9:.0f}"]
        for name in names:
            seconds = row.get(name)
            cells += (
                ["", ""]
                if seconds is None
                else [f"{row['nbytes'] / seconds / 1e9:.0f}", f"{seconds / row['seconds']:.2f}"]
            )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure all cases and print them."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.primitives")
    parser.add_argument("--backend", choices=("host", "cuda"), default="cuda")
    parser.add_argument("--elements", type=int, default=10_000_000)
    parser.add_argument("--loops", type=int, default=50)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peers", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    elements, loops = given.elements, given.loops
    if given.peers:
        of_peers = of_cupy if given.backend == "cuda" else of_numpy
        told = [of_peers(case, elements, loops) for case in CASES]
        sys.stdout.write(json.dumps(told) + "\n")
        return 0
    found = peers(given.backend, elements, loops)
    rows = []
    with System(given.backend, devices=1) as lab:
        for case, theirs in zip(CASES, found, strict=True):
            ours = of_accel_lab(lab.devices[0], case, elements, loops)
            nbytes = elements * np.dtype(case.dtype).itemsize * case.passes
            rows.append({**case._asdict(), "nbytes": nbytes, "seconds": ours, **theirs})
    sys.stdout.write(table(rows) + "\n")
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
