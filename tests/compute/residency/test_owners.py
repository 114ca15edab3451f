"""What an OutOfMemory says of who has the memory: numbers, messages, and the names of things."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, Device, System, array
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.message.service import in_context
from accel_lab.compute.residency.holdings import ContextMemory
from accel_lab.display.owners import told
from accel_lab.errors import OutOfMemory

WAIT = 60.0
KIB = 1 << 10
MAIN = sys.modules["__main__"]


@pytest.fixture
def full() -> Iterator[Device]:
    """Open a device of a MiB of which nothing gives way."""
    with System("host", memory_bytes=1 << 20, spill=False) as lab:
        yield lab.devices[0]


def refused(device: Device) -> OutOfMemory:
    with pytest.raises(OutOfMemory) as caught:
        array.zeros(device, (1000, KIB), dtype="uint8").result(WAIT)
    return caught.value


def test_the_names_of_the_largest_owners_are_told(
    full: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MAIN, "image", array.zeros(full, (300, KIB), dtype="uint8"), raising=False)
    layers = {"w": full.put(np.ones(200 * KIB, np.uint8))}
    monkeypatch.setattr(MAIN, "layers", layers, raising=False)
    error = refused(full)
    assert error.kept_by[0] == ("image",)
    assert "layers['w']" in error.kept_by[1]
    assert error.owner_ids == ((MAIN.image.id,), (layers["w"].id,))
    assert "Zeros #1 with 300 KiB (kept by image)" in str(error)
    assert "kept_by" in error.remedy


def test_a_variable_of_a_function_that_waits_is_a_name(full: Device) -> None:
    activations = array.zeros(full, (300, KIB), dtype="uint8")
    error = refused(full)
    here = "test_a_variable_of_a_function_that_waits_is_a_name"
    assert error.kept_by == ((f"activations in {here}()",),)
    activations.free()


def test_it_does_not_matter_which_thread_reads_the_answer(full: Device) -> None:
    activations = array.zeros(full, (300, KIB), dtype="uint8")
    with ThreadPoolExecutor(1) as another:
        (names,) = another.submit(refused, full).result(WAIT).kept_by
    here = "test_it_does_not_matter_which_thread_reads_the_answer"
    assert names == (f"activations in {here}()",)
    activations.free()


def test_what_has_no_name_is_an_owner_without_one(full: Device) -> None:
    found = [iter([array.zeros(full, (300, KIB), dtype="uint8")])]  # nobody looks in there
    error = refused(full)
    assert error.kept_by == ((),)
    assert str(error).endswith("the largest owners: Zeros #1 with 300 KiB")
    del found


def test_names_of_cells_are_told(full: Device) -> None:
    """The notebook has no handle of it: only the context knows the name."""
    ref = array.zeros(full, (300, KIB), dtype="uint8")
    full.run(bind, in_context(Workspaces), "weights", ref).result(WAIT)
    holder = [iter([ref])]
    del ref
    assert refused(full).kept_by == (("%%gpu weights",),)
    full.run(unbind, in_context(Workspaces), "weights").result(WAIT)
    assert refused(full).kept_by == ((),)
    del holder


def bind(workspaces: Workspaces, name: str, value: Any) -> None:
    workspaces.of("test").names[name] = value


def unbind(workspaces: Workspaces, name: str) -> None:
    del workspaces.of("test").names[name]


def test_what_is_free_is_told_with_the_largest_piece_of_it(full: Device) -> None:
    kept = array.zeros(full, (300, KIB), dtype="uint8")
    error = refused(full)
    left = (1 << 20) - 300 * KIB
    assert (error.asked_bytes, error.free_bytes, error.largest_free_bytes) == (
        1000 * KIB,
        left,
        left,
    )
    text = "1000 KiB were asked for and 724 KiB are free of 1 MiB, 724 KiB of these"
    assert str(error).startswith(f"{text} in one piece; the largest owners: ")
    del kept


def test_what_is_nearly_free_is_told_exactly(full: Device) -> None:
    kept = array.zeros(full, (24 * KIB + 256,), dtype="uint8")
    error = refused(full)
    left = (1 << 20) - 24 * KIB - 256
    text = f"1,024,000 B were asked for and {left:,} B are free of 1 MiB, {left:,} B of these"
    assert str(error).startswith(text)
    del kept


def test_pieces_that_the_pool_keeps_are_told_apart(full: Device) -> None:
    """As a card's are, where the driver has less than is free."""
    kept = array.zeros(full, (300, KIB), dtype="uint8")
    full.run(in_pieces, in_context(ContextMemory), 100).result(WAIT)
    error = refused(full)
    assert (error.free_bytes, error.largest_free_bytes) == ((1 << 20) - 300 * KIB, 100)
    assert ", 100 B of these in one piece and the rest in pieces that the pool keeps;" in str(error)
    del kept


def in_pieces(memory: ContextMemory, nbytes: int) -> None:
    backend: Any = memory._context.backend
    backend.largest_free_bytes = lambda: nbytes


def test_memory_that_a_library_misses_is_told_with_its_owners(full: Device) -> None:
    """It asks for memory by itself, as a card's plans do, and says what it likes."""
    kept = full.put(np.ones(100 * KIB, np.uint8))
    full.run(break_copies, in_context(ContextMemory)).result(WAIT)
    with pytest.raises(OutOfMemory) as caught:
        array.copy(kept).result(WAIT)
    error = caught.value
    assert str(error).startswith("no room for a plan: more was asked for and ")
    assert error.owners == (("Allocate #1", 100 * KIB),)
    assert error.kept_by[0]


def break_copies(memory: ContextMemory) -> None:
    from accel_lab.libraries.array.library import Copy

    def missing(*_: object) -> None:
        raise MemoryError("no room for a plan")

    routes = memory._context.routes
    routes[Copy] = routes[Copy]._replace(handler=missing)


def test_many_names_are_counted() -> None:
    text = told((("Zeros #1", 8), ("Put #2", 4)), (("a", "b", "c", "d", "e"), ()))
    assert text == (
        "; the largest owners: Zeros #1 with 8 B (kept by a, b, c and 2 more), Put #2 with 4 B"
    )
    assert told((), ()) == "; the largest owners: none of ours"


def test_a_namespace_that_cannot_be_read_costs_the_names_alone(
    full: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: AccelRef = array.zeros(full, (300, KIB), dtype="uint8")

    def strange(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("accel_lab.compute.residency.owners.handles", strange)
    error = refused(full)
    assert error.owners == (("Zeros #1", 300 * KIB),)
    assert error.kept_by == ((),)
    del kept
