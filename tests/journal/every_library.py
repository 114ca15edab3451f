"""A seeded program through every library, recorded and replayed: the test of every backend."""

from collections import Counter

import numpy as np

from accel_lab import (
    AccelRef,
    Device,
    System,
    array,
    blas,
    blas_lt,
    fft,
    jit,
    primitives,
    rng,
    solver,
    sparse,
    tensor,
)
from accel_lab.journal.entries.entry import kind_of
from accel_lab.journal.replay.replay import Replayed, replay

N = 32
WAIT_S = 120.0
LIBRARIES = {"array", "blas", "blas_lt", "fft", "graph", "jit", "rng"}
LIBRARIES |= {"primitives", "solver", "sparse", "tensor"}
COMPARED = frozenset(
    {
        "Normal",
        "Gamma",
        "Permutation",
        "Poisson",
        "Generate",
        "Sobol",
        "Gemm",
        "GemmBy",
        "Matmul",
        "R2C",
    }
    | {"C2R", "R2R", "Convolve", "Solve", "CholeskySolve", "LuSolve", "Slogdet", "Svd", "Eigh"}
    | {"Sparsify", "Convert", "Spmm", "Spgemm", "Spadd", "Spsolve", "Cg", "Gmres", "Contract"}
    | {"Reduce", "Permute", "Scan", "Sort", "Concatenate", "Unique", "Copy"}
    | {"TopK", "Select", "HistogramEven", "RunLengthEncode"}
)
"""Messages of which results are compared."""
CUBE = """
__global__ void cube(const double* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i] * x[i];
}
"""
FARTHER = "__device__ bool farther_than_one(double a) { return a * a > 1; }"
COUNTS_STEPS = frozenset({"Cg", "Gmres"})
"""What says after how many steps it was near enough: another backend's may be one more or less."""


def run(device: Device, seed: int) -> None:
    """Use every library on numbers of a seed, those with handles of their own too."""
    dice = np.random.default_rng(seed)
    generator = rng.Generator(device, seed=seed)
    x = device.put(dice.standard_normal((N, N)))
    y = generator.normal((N, N), "float64")
    _draw(device, generator)

    # Matrices whose eigenvalues are 8 at least: what is solved with them is well conditioned.
    gram = blas.gemm(x, x, array.eye(device, N, dtype="float64"), beta=8.0, trans_b="t")
    # Tuned first: what is tuned is kept, and a replay of what came before would use it, too.
    blas_lt.tune(x, y, activation="gelu")
    factor = 1 / blas.nrm2(x)
    blas.gemm(x, y, gram, alpha=factor, beta=0.5)
    blas.axpy(x, y, alpha=factor)
    hidden = blas_lt.matmul(x, y, alpha=1 / N, activation="gelu")

    spectrum = fft.rfft2(hidden)
    fft.irfft2(spectrum)
    fft.dctn(hidden, norm="ortho")
    fft.fftconvolve(x, y, "same")

    solver.solve(gram, y)
    solver.cholesky_solve(solver.cholesky(gram), y)
    factors = solver.lu(gram)
    solver.lu_solve(factors.lu, factors.pivots, y)
    solver.slogdet(gram)
    solver.svd(x, vectors=False)
    solver.eigh(gram, vectors=False)

    _solve_sparsely(device, x, y, gram)

    tensor.contract("ij,jk,kl->il", x, y, gram, alpha=1 / N)
    tensor.reduce("ij->j", x, "max")
    tensor.permute("ij->ji", y, "tanh")

    array.cumsum(array.sort(x, 0), 1)
    array.concatenate([x, y])[::2]
    x[x > 0].sum()  # how many there are only the device knows
    array.unique(array.sign(x), return_counts=True)

    _walk(device, generator, x, y)
    flat = x.reshape(N * N)
    primitives.scan(primitives.sort(flat, descending=True))
    primitives.top_k(flat, 9)
    primitives.select(flat, op="farther_than_one", source=FARTHER)
    primitives.histogram_even(flat, 16, -2, 2)
    runs = primitives.run_length_encode(array.sign(flat))

    cube = jit.compile(device, CUBE, "cube")
    out = array.zeros(device, (N, N), "float64")
    cube(N, N, (y, out, np.int32(N * N)))
    array.copy(out).result(WAIT_S)  # a kernel's own result has no digest
    runs.values.result(WAIT_S)  # of which a first one compiles longer than a kernel


def _walk(device: Device, generator: rng.Generator, x: AccelRef, y: AccelRef) -> None:
    """Launch a graph with other operands each time, among them random ones."""
    at = array.zeros(device, (N, N), "float64")
    with device.graph(x=x, size=0.5) as g:
        noise = generator.normal((N, N), "float64")
        array.add(at, blas.gemm(g["x"], noise, alpha=g["size"]), out=at)
    for size in (0.5, 0.25):
        g.launch(size=size)
        g.launch(x=y, size=-size)
    array.copy(at)
    g.clone().launch()
    array.copy(at)


def _draw(device: Device, generator: rng.Generator) -> None:
    """Draw from generators, one of which goes back, and from engines."""
    state = generator.state
    generator.gamma(2.5, 100, "float64")
    generator.state = state
    generator.permutation(100)
    (child,) = generator.spawn(1)
    child.poisson(3.0, 100)
    rng.generate(device, "mt19937", 100, seed=generator.seed)
    rng.sobol(device, 64, 3, "float64", scrambled=True, seed=generator.seed)


def _solve_sparsely(device: Device, x: AccelRef, y: AccelRef, gram: AccelRef) -> None:
    """Use sparse matrices: converted, multiplied, factored, and iterated with."""
    thin = sparse.from_dense(array.where(x > 1, x, 0.0))
    thin.tocsc() @ y
    (thin @ thin.T + thin).toarray()
    whole = sparse.from_dense(gram)
    sparse.spsolve(whole, y[0])
    sparse.cg(whole, y[0], preconditioner="ic0", rtol=1e-12)
    sparse.gmres(whole, y[1], preconditioner="ilu0", rtol=1e-12)
    device.ping().result(WAIT_S)


def compared(source: System, again: System) -> Counter[tuple[str, str]]:
    """Replay the journal of a system; count how the results of each message compare."""
    found: Counter[tuple[str, str]] = Counter()

    def count(done: Replayed) -> None:
        assert done.what != "failed", done
        if done.comparison is not None:
            found[done.entry.name, done.comparison.verdict] += 1

    report = replay(source.journal, again, on_step=count)
    assert (report.failed, report.not_run, report.damage) == ([], [], "")
    assert {name for name, _ in found} >= COMPARED, found
    return found


def libraries_in(lab: System) -> set[str]:
    """Return the libraries whose messages a system's journal has."""
    entries = [entry for entry in lab.journal if entry.kind == "message"]
    return {str(kind_of(entry.message[0]).library) for entry in entries}


def assert_equal(source: System, again: System) -> None:
    """Every result is the same, bit for bit."""
    found = compared(source, again)
    assert {verdict for _, verdict in found} == {"equal"}, found


def assert_near(source: System, again: System) -> None:
    """Every result is within tolerance, but for what counts the steps of an iteration."""
    found = compared(source, again)
    differ = {name for name, verdict in found if verdict == "differs"}
    assert differ <= COUNTS_STEPS, found
