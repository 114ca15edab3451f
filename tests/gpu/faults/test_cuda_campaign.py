"""Real faults at random moments of random programs, and explanations of what did it."""

import gc
import os
import random
import sys
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, array, blas, fft, jit, rng
from accel_lab.compute.actors.fault import Fault
from accel_lab.errors import AccelError, ContextLost, LibraryError, OutOfMemory
from tests.gpu.card import assert_used_at_most, card_bytes

pytestmark = pytest.mark.gpu

SEED = int(os.environ.get("ACCEL_LAB_SEED", "1"))
STEPS, WAIT, N = 400, 60.0, 64
FAULTS: tuple[Fault, ...] = (
    *("kill", "segfault", "exit", "poison", "trap", "hang", "library", "out of memory"),
)
ASTRAY = """
__global__ void astray(float* x, long long far) { x[far + threadIdx.x] = 1.0f; }
"""
SCALE = """
__global__ void scale(float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
"""


def used_bytes() -> int:
    """What is used beside the workspace of cuBLAS, which is there once there was a product."""
    import cupy

    from accel_lab.backends.cuda.blas.products import WORKSPACE_BYTES

    return int(cupy.get_default_memory_pool().used_bytes()) - WORKSPACE_BYTES


class Program:
    """Buffers and what NumPy says is in them."""

    def __init__(self, lab: System, dice: random.Random) -> None:
        self.lab, self.dice = lab, dice
        self.gpu = lab.devices[0]
        self.kernel = jit.compile(self.gpu, SCALE, "scale")
        self.twins: list[tuple[AccelRef, Any]] = []
        self.done: Counter[str] = Counter()

    def step(self) -> None:
        """Do one thing; now and then a fault."""
        what = self.dice.choice(
            ["put", "gemm", "axpy", "in place", "jit", "fft", "rng", "get", "drop", "fault"]
        )
        if not self.twins:
            what = "put"
        self.done[what] += 1
        getattr(self, f"_{what.replace(' ', '_')}")()
        if len(self.twins) > 12:
            del self.twins[0]

    def _keep(self, ref: AccelRef, twin: Any) -> None:
        self.twins.append((ref, twin.astype(np.float32)))

    def _pick(self) -> tuple[AccelRef, Any]:
        return self.dice.choice(self.twins)

    def _put(self) -> None:
        seed = self.dice.randrange(1 << 30)
        value = np.random.default_rng(seed).standard_normal((N, N)).astype(np.float32)
        self._keep(self.gpu.put(value), value)

    def _gemm(self) -> None:
        (a, x), (b, y) = self._pick(), self._pick()
        self._keep(blas.gemm(a, b, alpha=1 / N), x @ y / N)

    def _axpy(self) -> None:
        (a, x), (b, y) = self._pick(), self._pick()
        self._keep(blas.axpy(a, b, alpha=-0.5), -0.5 * x + y)

    def _in_place(self) -> None:
        a, x = self._pick()
        blas.scal(a, 0.5, out=a)
        x *= np.float32(0.5)

    def _jit(self) -> None:
        a, x = self._pick()
        self.kernel(N * N // 256, 256, (a, np.float32(0.25), N * N))
        x *= np.float32(0.25)

    def _fft(self) -> None:
        a, x = self._pick()
        self._keep(fft.irfft(fft.rfft(array.copy(a))), x.copy())

    def _rng(self) -> None:
        ref = rng.uniform(self.gpu, (N, N), seed=self.dice.randrange(1 << 30))
        self._keep(ref, self.gpu.get(ref).result(WAIT))

    def _get(self) -> None:
        a, x = self._pick()
        np.testing.assert_allclose(self.gpu.get(a).result(WAIT), x, rtol=2e-3, atol=2e-3)

    def _drop(self) -> None:
        del self.twins[self.dice.randrange(len(self.twins))]
        gc.collect()

    def _fault(self) -> None:
        fault = self.dice.choice(FAULTS)
        before = self.gpu.generation
        reply = self.lab.inject(fault, timeout_s=0.3 if fault == "hang" else None)
        if self.dice.random() < 0.5:  # what stands behind it is run again
            self._gemm()
        try:
            reply.result(WAIT)
        except (OutOfMemory, LibraryError):
            assert self.gpu.generation == before
            self.done[f"fault {fault}"] += 1
        except ContextLost:
            assert self.gpu.generation > before
            self.done[f"fault {fault}"] += 1

    def check(self) -> None:
        """Compare every buffer with its twin."""
        for ref, twin in self.twins:
            np.testing.assert_allclose(self.gpu.get(ref).result(WAIT), twin, rtol=2e-3, atol=2e-3)


def test_random_programs_survive_real_faults(capsys: pytest.CaptureFixture[str]) -> None:
    """Every buffer that is in use has the right value after every fault."""
    dice = random.Random(SEED)
    began = time.perf_counter()
    before = card_bytes()
    with System("cuda", devices=1, max_restarts=1_000_000, within_s=0.001) as lab:
        program = Program(lab, dice)
        for _ in range(STEPS):
            program.step()
        program.check()
        program.lab.ready()
        some = program.gpu.put(np.eye(2))
        blas.gemm(some, some).result(WAIT)
        del some
        losses = program.gpu.generation - 1
        program.twins.clear()
        gc.collect()
        until = time.monotonic() + WAIT
        while found := program.gpu.run(used_bytes, pure=True).result(WAIT):
            assert time.monotonic() < until, f"{found} bytes are left when all is dropped"
        lab.check()
    assert_used_at_most(before)
    assert all(program.done[f"fault {fault}"] for fault in FAULTS), program.done
    with capsys.disabled():
        sys.stdout.write(
            f"\nseed {SEED}: {STEPS} steps, {losses} losses, "
            f"{time.perf_counter() - began:.0f} s, {dict(program.done)}\n"
        )


def test_explain_names_the_kernel_that_went_astray(capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty times, at a random depth of a pipeline of a hundred."""
    dice = random.Random(SEED)
    seconds = []
    with System("cuda", devices=1, max_restarts=1_000_000, within_s=0.001, recover="stale") as lab:
        (gpu,) = lab.devices
        for _ in range(20):
            x = gpu.put(np.ones(256, np.float32))
            gpu.get(x).result(WAIT)
            kernel = jit.compile(gpu, ASTRAY, "astray").result(WAIT)
            depth = dice.randrange(100)
            replies: list[Any] = []
            for place in range(100):
                if place == depth:
                    replies.append(kernel(1, 32, (x, 1 << 40)))
                else:
                    x = blas.scal(x, 1.01)
            with pytest.raises(AccelError):
                replies[0].result(WAIT)
            begin = time.perf_counter()
            found = lab.explain(timeout_s=10.0)
            seconds.append(time.perf_counter() - begin)
            assert found.culprit is not None, found
            assert found.culprit.name == "LaunchKernel", found
            assert "astray" in str(found)
            assert found.code in (700, 719), found
    with capsys.disabled():
        worst, middle = max(seconds), float(np.median(seconds))
        sys.stdout.write(f"\nexplained in {middle:.2f} s (worst {worst:.2f} s)\n")
    assert max(seconds) < 5.0


def test_compute_sanitizer_says_which_line_did_it() -> None:
    """It has the line, and a write that is astray by one element, where no driver sees it."""
    source = "__global__ void astray(float* x, int n) {\n    x[n] = 1.0f;\n}\n"
    with System("cuda", devices=1, max_restarts=100) as lab:
        (gpu,) = lab.devices
        x = gpu.put(np.ones(256, np.float32))
        kernel = jit.compile(gpu, source, "astray").result(WAIT)
        with pytest.raises(ContextLost):
            kernel(1, 1, (x, 1 << 30)).result(WAIT)
        found = lab.explain(sanitize=True)
    assert "Invalid __global__ write of size 4 bytes" in found.memcheck, found
    assert ":2" in found.memcheck, found
