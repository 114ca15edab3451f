"""A fork has what the system had: the same numbers, shared as they were, and apart from then on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System, blas, jit, rng, solver, sparse
from accel_lab.errors import ContextLost

A = np.arange(12.0).reshape(3, 4)
PRODUCT = A @ A.T
KERNEL = """__constant__ double factor;
extern "C" __global__ void scaled(double* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}"""


def half_more(x: Any) -> Any:
    return x + 0.5


@pytest.fixture(scope="module")
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1) as made:
        yield made
        made.check()


@pytest.fixture(scope="module")
def names(lab: System, compiling: None) -> dict[str, Any]:
    gpu = lab.devices[0]
    a = gpu.put(A)
    product = blas.gemm(a, a, trans_b="t")
    half = gpu.put(np.arange(6)).astype("bfloat16")
    found: dict[str, Any] = {"lab": lab, "gpu": gpu, "a": a, "product": product, "half": half}
    found |= {"row": product[1], "corner": product[1:, 1:], "back": product[::-1], "few": half[2:4]}
    found["empty"] = product[:0]
    found["once"] = gpu.run(half_more, a, writes=())  # no message makes this again
    found["rng"] = rng.Generator(gpu, 5)
    found["rng"].uniform((3,))
    found["qr"] = solver.qr(product)
    found["matrix"] = sparse.from_dense(a)
    found["factors"] = sparse.factorize(sparse.from_dense(gpu.put(np.eye(3) * 2)))
    found["kernel"] = jit.compile(gpu, KERNEL, "scaled")
    found["kernel"].globals["factor"] = np.float64(3.0)
    found["held"] = {"rows": [found["row"], a], "n": 3}
    return found


@pytest.fixture(scope="module")
def fork(lab: System, names: dict[str, Any]) -> Iterator[Any]:
    with lab.fork(names) as other:
        yield other
        other.check()


def test_a_fork_has_the_same_numbers(fork: Any, names: dict[str, Any]) -> None:
    for name in ("a", "product", "half", "row", "corner", "back", "few", "empty", "once"):
        mine, its = names[name], fork[names[name]]
        assert its is fork.names[name]
        assert its.device is fork.devices[0]
        assert (its.shape, its.dtype) == (mine.shape, mine.dtype)
        np.testing.assert_array_equal(its.get(), mine.get())
    np.testing.assert_array_equal(fork.names["matrix"].get().toarray(), A)
    q, r = fork.names["qr"]
    np.testing.assert_allclose((q @ r).get(), PRODUCT, atol=1e-9)
    assert fork.lost == {}


def test_what_stands_for_the_system_stands_for_the_fork(fork: Any, names: dict[str, Any]) -> None:
    assert fork.names["lab"] is fork
    assert fork.names["gpu"] is fork.devices[0] is fork[names["gpu"]]
    rows = fork.names["held"]["rows"]
    assert rows[0] is fork[names["row"]]
    assert fork[names["held"]]["rows"][1] is fork[names["a"]]


def test_what_is_no_array_is_there_too(fork: Any, names: dict[str, Any]) -> None:
    gpu = fork.devices[0]
    np.testing.assert_allclose(fork.names["factors"].solve(gpu.put(np.ones(3))).get(), 0.5)
    x = gpu.put(np.ones(8))
    fork[names["kernel"]](1, 8, (x, 8)).result()
    np.testing.assert_array_equal(x.get(), 3.0)


def test_generators_go_on_from_where_they_were(fork: Any, names: dict[str, Any]) -> None:
    drawn = fork[names["rng"]].uniform((4,)).get()
    np.testing.assert_array_equal(drawn, names["rng"].uniform((4,)).get())
    np.testing.assert_array_equal(
        fork[names["rng"]].uniform((2,)).get(), names["rng"].uniform((2,)).get()
    )


def test_writes_and_losses_stay_where_they_are(lab: System, names: dict[str, Any]) -> None:
    gpu = lab.devices[0]
    generation = gpu.generation
    with lab.fork(names) as other:
        row, product = other[names["row"]], other[names["product"]]
        blas.scal(row, 0.0, out=row)
        expected = PRODUCT.copy()
        expected[1] = 0
        np.testing.assert_array_equal(product.get(), expected)  # it is a view there, too
        np.testing.assert_array_equal(other[names["back"]].get(), expected[::-1])
        np.testing.assert_array_equal(names["product"].get(), PRODUCT)
        with pytest.raises(ContextLost):
            other.inject("kill").result()
        np.testing.assert_array_equal(product.get(), expected)
        np.testing.assert_array_equal(other[names["once"]].get(), A + 0.5)
        blas.scal(other[names["few"]], 0.0, out=other[names["few"]])
        assert other[names["half"]].get().astype(int).tolist() == [0, 1, 0, 0, 4, 5]
        other.check()
    assert gpu.generation == generation
    np.testing.assert_array_equal(names["product"].get(), PRODUCT)
    assert names["half"].get().astype(int).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_fork_outlives_its_system(backend: Any) -> None:
    with System(backend.__name__.rpartition(".")[2], devices=1) as first:
        x = first.devices[0].put(A)
        other = first.fork({"x": x})
        blas.scal(x, 2.0, out=x)
    try:
        np.testing.assert_array_equal(other.names["x"].get(), A)
        with other.fork() as third:  # of its own names
            np.testing.assert_array_equal((third.names["x"] + 1).get(), A + 1)
        np.testing.assert_array_equal(other.names["x"].get(), A)
    finally:
        other.close()
