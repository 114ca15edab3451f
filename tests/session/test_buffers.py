"""Buffers come back when they are used, by their messages or of their bytes, and not before."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

import accel_lab
from accel_lab import AccelRef, Session, System, array, blas, jit, rng, solver, sparse
from accel_lab.compute.message.handle import Handle
from accel_lab.errors import ContextLost, SessionDamaged, SessionError
from accel_lab.session.buffers import plans
from tests.conftest import require

KERNEL = """extern "C" __global__ void twice(double* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}"""
A = np.arange(12.0).reshape(3, 4)
Recorded: TypeAlias = tuple[Path, dict[str, Any]]


def impure(x: Any) -> Any:
    return x + 0.5


def record(lab: Session, names: dict[str, Any]) -> None:
    """Bind one of each kind."""
    gpu = lab.devices[0]
    names |= {"lab": lab, "gpu": gpu, "a": gpu.put(A), "unused": gpu.put(np.ones(1 << 17))}
    names["same"] = names["a"]
    names["product"] = blas.gemm(names["a"], names["a"], trans_b="t")
    names["row"] = names["product"][1]
    blas.axpy(gpu.put(np.ones(3)), names["row"], out=names["row"])
    names["corner"] = names["product"][2:, 2:]
    names["rng"] = rng.Generator(gpu, 5, stream=2)
    names["u"] = names["rng"].uniform((4,), "float64")
    names["kernel"] = jit.compile(gpu, KERNEL, "twice")
    names["x"] = gpu.put(np.ones(8))
    names["kernel"](1, 8, (names["x"], 8))
    names["once"] = gpu.run(impure, names["a"], writes=())
    names["view"] = array.reshape(names["once"], (12,))
    names["pure"] = gpu.run(impure, names["a"], pure=True)
    names["held"] = {"rows": [names["row"], names["a"]], "n": 3}
    names["matrix"] = sparse.from_dense(names["a"])
    names["qr"] = solver.qr(names["product"])
    names["half"] = gpu.put(np.arange(5)).astype("bfloat16")
    names["long"] = gpu.put(np.ones(4))
    for _ in range(plans.LONG + 10):
        blas.scal(names["long"], 1.001, out=names["long"])
    names["factors"] = sparse.factorize(sparse.from_dense(gpu.put(np.eye(3) * 2)))
    names["failed"] = gpu.run(lambda: 1 / 0)
    names["answer"] = gpu.run(lambda: 5)
    names["freed"] = gpu.put(np.ones(3))
    names["freed"].free()


EXPECTED = {
    "a": A,
    "same": A,
    "product": A @ A.T + np.array([[0], [1], [0]]),
    "row": (A @ A.T)[1] + 1,
    "x": np.full(8, 2.0),
    "once": A + 0.5,
    "view": (A + 0.5).ravel(),
    "pure": A + 0.5,
    "long": np.full(4, 1.001 ** (plans.LONG + 10)),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Return a folder with one commit, and some values as they were."""
    require("compiler")
    folder, names = tmp_path_factory.mktemp("recorded") / "run.lab", dict[str, Any]()
    with accel_lab.open(folder, "host", names=names) as lab:
        record(lab, names)
        commit = lab.commit()
        assert set(commit.lost) == {"failed", "answer", "freed"}
        assert "ZeroDivisionError" in commit.lost["failed"]
        assert "freed" in commit.lost["freed"]
        values = {name: names[name].get() for name in ("u", "half")}
        values["next"] = names["rng"].uniform((4,), "float64").get()
    return folder, values


class Again:
    """A folder that was opened again."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.names: dict[str, Any] = {}
        self.lab = accel_lab.open(folder, "host", names=self.names, **options)
        self.gpu = self.lab.devices[0]

    def __getitem__(self, name: str) -> Any:
        return self.names[name]

    def close(self) -> None:
        self.lab.close()


@pytest.fixture(scope="module")
def again(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Again]:
    """Open a copy, elsewhere, on two devices."""
    folder = tmp_path_factory.mktemp("moved") / "other.lab"
    shutil.copytree(recorded[0], folder)
    made = Again(folder, devices=2)
    yield made
    made.close()


def test_nothing_is_made_before_it_is_used(recorded: Recorded, tmp_path: Path) -> None:
    shutil.copytree(recorded[0], tmp_path / "run.lab")
    again = Again(tmp_path / "run.lab")
    try:
        refs = {name: one for name, one in again.names.items() if isinstance(one, AccelRef)}
        assert refs
        assert all(type(one).waits for one in refs.values())
        assert again.gpu.last_number == 0
        assert again["a"].shape == (3, 4)
        assert again["a"].dtype == "float64"
        assert "waits until it is used" in repr(again["a"])
        assert "compiled when it is used" in repr(again["kernel"])
        again.lab.commit()
        assert again.gpu.last_number == 0
        np.testing.assert_array_equal(again["row"].get(), EXPECTED["row"])
        still = {name for name, one in refs.items() if type(one).waits}
        assert still == refs.keys() - {"row", "product", "corner"}
    finally:
        again.close()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_buffer_is_what_it_was(again: Again, name: str) -> None:
    np.testing.assert_allclose(again[name].get(), EXPECTED[name], rtol=1e-12)


def test_random_numbers_go_on(again: Again, recorded: Recorded) -> None:
    values = recorded[1]
    np.testing.assert_array_equal(again["u"].get(), values["u"])
    np.testing.assert_array_equal(again["half"].get(), values["half"])
    assert (again["rng"].seed, again["rng"].stream) == (5, 2)
    np.testing.assert_array_equal(again["rng"].uniform((4,), "float64").get(), values["next"])


def test_what_was_one_is_one(again: Again) -> None:
    assert again["same"] is again["a"]
    row, a = again["held"]["rows"]
    assert row is again["row"]
    assert a is again["a"]
    assert again["lab"] is again.lab
    assert again["gpu"] is again.gpu


def test_records_of_handles_come_back(again: Again) -> None:
    np.testing.assert_array_equal(again["matrix"].get().toarray(), A)
    q, r = again["qr"]
    np.testing.assert_allclose((q @ r).get(), EXPECTED["product"], atol=1e-9)
    assert type(again["qr"]).__name__ == "QrParts"
    np.testing.assert_allclose(again["factors"].solve(again.gpu.put(np.ones(3))).get(), 0.5)
    assert type(again["factors"].factors) is Handle


def test_a_kernel_is_compiled_again(again: Again) -> None:
    x = again.gpu.put(np.ones(8))
    again["kernel"](1, 8, (x, 8)).result()
    np.testing.assert_array_equal(x.get(), 2.0)
    assert again["kernel"].source == KERNEL


def test_what_shared_memory_shares_it_again(recorded: Recorded, tmp_path: Path) -> None:
    shutil.copytree(recorded[0], tmp_path / "run.lab")
    again = Again(tmp_path / "run.lab")
    try:
        blas.scal(again["corner"], 0.0, out=again["corner"])
        assert again["product"].get()[2, 2] == 0.0
        blas.scal(again["row"], 0.0, out=again["row"])
        np.testing.assert_array_equal(again["product"].get()[1], 0.0)
        with pytest.raises(ContextLost):
            again.lab.inject("kill", again.gpu).result()
        np.testing.assert_array_equal(again["product"].get()[1], 0.0)
        np.testing.assert_array_equal(again["once"].get(), EXPECTED["once"])
        assert again.lab.commit().lost == {}
    finally:
        again.close()
    third = Again(tmp_path / "run.lab")
    try:
        np.testing.assert_array_equal(third["product"].get()[1], 0.0)
        np.testing.assert_array_equal(third["pure"].get(), EXPECTED["pure"])
    finally:
        third.close()


def test_an_operand_of_any_place_is_made(recorded: Recorded, tmp_path: Path) -> None:
    shutil.copytree(recorded[0], tmp_path / "run.lab")
    again = Again(tmp_path / "run.lab")
    try:
        fresh = again.gpu.put(np.ones((3, 4)))
        total = blas.axpy(fresh, again["a"])
        np.testing.assert_array_equal(total.get(), A + 1)
        found = again.gpu.run(lambda rows: rows[0] + 1, [again["once"]]).get()
        np.testing.assert_array_equal(found, EXPECTED["once"] + 1)
        assert float(again["u"][0]) == again["u"].get()[0]
    finally:
        again.close()


def test_without_leave_no_code_runs(recorded: Recorded, tmp_path: Path) -> None:
    shutil.copytree(recorded[0], tmp_path / "run.lab")
    again = Again(tmp_path / "run.lab", run_code=False)
    try:
        assert {"kernel", "x", "pure"} <= again.lab.opened.later.keys()
        np.testing.assert_array_equal(again["row"].get(), EXPECTED["row"])
        np.testing.assert_array_equal(again["once"].get(), EXPECTED["once"])
        sent = again.gpu.last_number
        for name in ("x", "pure"):
            with pytest.raises(SessionError, match="run_code=True"):
                again[name].get()
        with pytest.raises(SessionError, match="run_code=True"):
            again["kernel"](1, 8, (again["row"], 3))
        assert again.gpu.last_number == sent
        assert again.lab.commit().lost == {}
    finally:
        again.close()
    trusted = Again(tmp_path / "run.lab")  # what had no leave was not lost by that
    try:
        np.testing.assert_array_equal(trusted["x"].get(), EXPECTED["x"])
    finally:
        trusted.close()


@pytest.mark.parametrize(
    ("backend", "devices"), [("host", 2), pytest.param("cuda", 1, marks=pytest.mark.gpu)]
)
def test_what_one_backend_has_recorded_another_has(
    backend: str, devices: int, tmp_path: Path
) -> None:
    names: dict[str, Any] = {}
    with accel_lab.open(tmp_path / "run.lab", backend, devices, names=names) as lab:
        first, last = lab.devices[0], lab.devices[-1]
        names["a"] = first.put(np.linspace(-1, 1, 48, dtype="float32").reshape(6, 8))
        names["product"] = blas.gemm(names["a"], names["a"], trans_b="t")
        names["u"] = rng.Generator(first, 3).uniform((1000,))
        names["copy"] = last.put(names["product"])
        names["sum"] = blas.axpy(names["copy"], last.put(np.ones((6, 6), "float32")))
        names["once"] = last.run(impure, names["copy"], writes=())
        assert lab.commit().lost == {}
        values = {name: one.get() for name, one in names.items()}
    for where in ("host", backend):
        found: dict[str, Any] = {}
        with accel_lab.open(tmp_path / "run.lab", where, 1, names=found):
            for name, value in values.items():
                np.testing.assert_allclose(found[name].get(), value, rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(found["u"].get(), values["u"])
            np.testing.assert_array_equal(found["a"].get(), values["a"])


def test_a_journal_that_was_cut_off_is_named(recorded: Recorded, tmp_path: Path) -> None:
    folder = tmp_path / "run.lab"
    shutil.copytree(recorded[0], folder)
    journal = folder / "journal.sqlite"
    with journal.open("r+b") as file:
        file.truncate(journal.stat().st_size // 3)
    with pytest.raises(SessionDamaged, match=r"journal\.sqlite"):
        use(folder, "row")


def test_a_journal_without_a_message_is_named(recorded: Recorded, tmp_path: Path) -> None:
    folder = tmp_path / "run.lab"
    shutil.copytree(recorded[0], folder)
    for table, text in (
        ("contents", "bytes that are kept as"),
        ("groups", "groups 1 to .* are missing"),
    ):
        with sqlite3.connect(folder / "journal.sqlite") as db:
            db.execute(f"DELETE FROM {table}")  # noqa: S608 - of ours
        db.close()
        with pytest.raises(SessionDamaged, match=text) as told:
            use(folder, "unused")
        assert told.value.path == str(folder / "journal.sqlite")
        use(folder, "once")  # whose bytes are kept


def use(folder: Path, name: str) -> None:
    """Open a folder and use one of its names."""
    again = Again(folder)
    try:
        again[name].get()
    finally:
        again.close()


def test_a_folder_without_a_content_is_not_opened(recorded: Recorded, tmp_path: Path) -> None:
    folder = tmp_path / "run.lab"
    shutil.copytree(recorded[0], folder)
    gone = next((folder / "contents").iterdir())
    gone.unlink()
    with pytest.raises(SessionDamaged, match=gone.name):
        Again(folder)
    gone.write_bytes(b"other")
    Again(folder, commit=1).close()  # the lock was given back


def test_buffers_of_another_system_are_told(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with (
        System("host", journal=None) as other,
        accel_lab.open(tmp_path / "run.lab", "host", names=names) as lab,
    ):
        names["theirs"] = other.devices[0].put(A)
        names["both"] = [names["theirs"], lab.devices[0].put(A)]
        lost = lab.commit().lost
    assert set(lost) == {"theirs", "both"}
    assert "another system" in lost["both"]


def test_the_same_folder_is_the_same_session(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    with accel_lab.open(tmp_path / "run.lab", "host", names=names) as lab:
        assert accel_lab.open(tmp_path / "run.lab", "host") is lab
        names |= {"x": 5, "a": lab.devices[0].put(A)}
        lab.commit()
        names["x"] = 6
    with accel_lab.open(tmp_path / "run.lab", "host", names=names) as lab:
        assert names["x"] == 6  # as this kernel has it
        assert lab.opened.left == ("x",)
        np.testing.assert_array_equal(names["a"].get(), A)  # of a closed system it was
        assert lab.commit().number == 2
    with accel_lab.open(tmp_path / "run.lab", "host", names={}, commit=1) as lab:
        assert "x" in lab.opened.bound
