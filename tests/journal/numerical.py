"""A seeded program of numbers, recorded and replayed: the test of every backend."""

from collections import Counter

from accel_lab import Device, System, array, blas, fft, jit, rng
from accel_lab.journal.replay.replay import Replayed, replay

ROUNDS = 30
N = 64
WAIT_S = 120.0
SQUARE = """
__global__ void square(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] < 0 ? -x[i] * x[i] : x[i] * x[i];
}
"""
MADE = ("Uniform", "Normal", "Gemm", "Zeros", "Copy", "R2C", "C2R")
EXACT = ("Uniform", "Zeros")


def run(device: Device) -> None:
    """Draw, multiply, square by a kernel of the user's, and transform there and back."""
    square = jit.compile(device, SQUARE, "square")
    for seed in range(ROUNDS):
        product = blas.gemm(
            rng.uniform(device, (N, N), seed=seed), rng.normal(device, (N, N), seed=seed)
        )
        out = array.zeros(device, (N, N), "float32")
        square(N, N, (product, out, N * N))
        spectrum = fft.r2c(array.copy(out))  # a kernel's own result has no digest
        fft.c2r(spectrum).result(WAIT_S)


def assert_equal(source: System, again: System) -> None:
    """All results are the same, bit for bit."""
    found = verdicts(source, again)
    assert found == {(name, "equal"): ROUNDS for name in MADE}, found


def assert_near(source: System, again: System) -> None:
    """All results are within tolerance, and what is exact everywhere is the same bit for bit."""
    found = verdicts(source, again)
    assert not [name for name, verdict in found if verdict == "differs"], found
    for name in MADE:
        assert found[name, "equal"] + found[name, "within tolerance"] == ROUNDS
    for name in EXACT:
        assert found[name, "equal"] == ROUNDS


def verdicts(source: System, again: System) -> Counter[tuple[str, str]]:
    """Replay the journal of a system and count how the results of each message compare."""
    found: Counter[tuple[str, str]] = Counter()

    def count(done: Replayed) -> None:
        if done.comparison is not None:
            found[done.entry.name, done.comparison.verdict] += 1

    report = replay(source.journal, again, on_step=count)
    assert (report.failed, report.not_run, report.uncompared, report.damage) == ([], [], 0, "")
    return found
