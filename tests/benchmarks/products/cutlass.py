"""Rates of CUTLASS's products beside cuBLASLt's, in one run; on the host NumPy does both.

    python -m tests.benchmarks.products.cutlass --backend cuda --json cutlass.json

Operands are normal numbers, made once; `b` lies with its k beside each other, as cuBLASLt wants it
of int8 and float8. Kernels are compiled first, each dtype's in a process of its own, as NVRTC
compiles one at a time; then tiles are searched. Then both take turns, in as many calls as fill a
turn, and the end of the last is waited for. What is told is the median of the turns. A product that
fails is told by its error, and the others go on.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab import System, array, blas_lt, cutlass
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "float8_e4m3fn", "float8_e5m2")
SIZES = (4096, 8192)
TURN_S = 0.08
TURNS = 5
LIMIT_S = 120.0
COMPILED_S = 300
LITTLE = 256  # a product whose kernels are those of large ones
OF_INT8 = 30.0  # so many steps has a standard deviation


def operands(normal: AccelRef, dtype: str, size: int) -> tuple[AccelRef, AccelRef]:
    """Return a, and b turned around, as square views of what was drawn."""
    wide = array.multiply(normal, OF_INT8) if dtype == "int8" else normal
    a, turned = (array.cast(wide[at, :size, :size], dtype) for at in range(2))
    return a, turned


def calls(a: AccelRef, turned: AccelRef, dtype: str) -> dict[str, Callable[[], Any]]:
    """Return a product of both, by who makes it; the first may be told to search."""
    b = array.transpose(turned)
    ours = cutlass.scaled_gemm if dtype.startswith("float8") else cutlass.gemm
    made: dict[str, Callable[[], Any]] = {
        "search": lambda: ours(a, b, search=True),
        "cutlass": lambda: ours(a, b),
        "blas_lt": lambda: blas_lt.matmul(a, turned, trans_b="t"),
    }
    if dtype == "int8" or dtype.startswith("float8"):  # float8 makes float32 in both
        made["blas_lt"] = lambda: blas_lt.fused_matmul(a, turned, trans_b="t").d
    return made


def compiled(backend: str, dtypes: Sequence[str]) -> None:
    """Have the kernels of all dtypes compiled, side by side; what fails is told later."""
    command = [sys.executable, "-m", "tests.benchmarks.products.cutlass", "--backend", backend]
    command += ["--compile", "--sizes", str(LITTLE), "--dtypes"]
    running = [
        subprocess.Popen([*command, dtype], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for dtype in dtypes
    ]
    try:
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(COMPILED_S)
    finally:
        for process in running:
            process.kill()
            process.wait()


def timed(call: Callable[[], Any], loops: int) -> float:
    """Return how long one call takes in a row of them."""
    begin = time.perf_counter()
    for _ in range(loops):
        made = call()
    made.result(LIMIT_S)
    return (time.perf_counter() - begin) / loops


def row(normal: AccelRef, dtype: str, size: int) -> dict[str, Any]:
    """Return the TFLOP/s of both for a dtype and a size."""
    both = calls(*operands(normal, dtype, size), dtype)
    searched = timed(both.pop("search"), 1)
    # The first call of each takes far longer than the others, so the shortest of some counts.
    loops = {
        name: max(1, int(TURN_S / min(timed(call, 1) for _ in range(4))))
        for name, call in both.items()
    }
    turns: dict[str, list[float]] = {name: [] for name in both}
    for _ in range(TURNS):
        for name, call in both.items():
            turns[name].append(timed(call, loops[name]))
    rates = {name: 2e-12 * size**3 / statistics.median(found) for name, found in turns.items()}
    ratio = rates["cutlass"] / rates["blas_lt"]
    return {"dtype": dtype, "size": size, **rates, "ratio": ratio, "search_s": searched}


def table(rows: list[dict[str, Any]]) -> str:
    """Write rows as Markdown."""
    lines = [
        "| dtype | n | cutlass TFLOP/s | cuBLASLt TFLOP/s | ratio | search s |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for told in rows:
        name = f"| {told['dtype']} | {told['size']} |"
        if "error" in told:
            lines.append(f"{name} {told['error']} | | | |")
        else:
            figures = f" {told['cutlass']:.1f} | {told['blas_lt']:.1f} | {told['ratio']:.3f} |"
            lines.append(f"{name}{figures} {told['search_s']:.1f} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure all dtypes at all sizes and print them."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.products.cutlass")
    parser.add_argument("--backend", choices=("host", "cuda"), default="cuda")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--compile", action="store_true", help="only search")
    given = parser.parse_args(arguments)
    if given.backend == "cuda" and not given.compile:
        compiled(given.backend, given.dtypes)
    most, rows = max(given.sizes), []
    with System(given.backend, devices=1) as lab:
        drawn = np.random.default_rng(0).standard_normal((2, most, most), np.float32)
        normal = lab.devices[0].put(drawn)
        for dtype in given.dtypes:
            for size in given.sizes:
                try:
                    if given.compile:
                        timed(calls(*operands(normal, dtype, size), dtype)["search"], 1)
                        continue
                    rows.append(row(normal, dtype, size))
                except AccelError as error:
                    rows.append({"dtype": dtype, "size": size, "error": str(error).split("\n")[0]})
    sys.stdout.write(table(rows) + "\n")
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
