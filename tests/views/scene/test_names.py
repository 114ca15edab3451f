"""Which names of the notebook hold a buffer; on made-up namespaces, with real handles."""

import gc
import sys
import threading
import time
from collections import OrderedDict, deque, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import blas
from accel_lab.compute.events.samples import Block, MemorySampled
from accel_lab.compute.message.buffer import AccelRef, Owner
from accel_lab.compute.residency.notebook_names import NAMED, handle_in, held_in, notebook
from accel_lab.errors import AccelError
from accel_lab.system import System
from accel_lab.views.scene import names
from accel_lab.views.scene.names import Names

Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - as a notebook writes it


class Chip:
    """A device, as far as a handle and its finder look."""

    def __init__(self, name: str = "gpu0", generation: int = 1) -> None:
        self.name = name
        self.generation = generation
        self.freed: deque[int] = deque()

    def holds(self, ref: AccelRef) -> bool:
        return ref.generation == self.generation

    def ref(self, id_: int) -> AccelRef:
        owner = Owner(id_, self.freed)
        device: Any = self
        return AccelRef(device, None, device, owner, self.generation, (2,), "float32")


@pytest.fixture
def chip() -> Chip:
    return Chip()


def found(space: dict[str, Any], chip: Chip) -> dict[int, tuple[str, ...]]:
    return held_in(space, [chip]).get((chip.name, chip.generation), {})


@dataclass
class Model:
    """Objects of the user's, with a place for attributes."""

    weights: Any
    bias: Any = None


@dataclass(slots=True)
class Slotted:
    """And with slots."""

    weights: Any


def test_a_name_an_item_a_key_and_an_attribute_are_found(chip: Chip) -> None:
    x, y, z, u, v, w = (chip.ref(id_) for id_ in range(1, 7))
    space = {
        "x": x,
        "layers": [None, None, None, y],
        "pair": Pair(1, z),
        "state": {"k": u, 3: v, (1, 2): x},
        "model": Model(w),
        "slotted": Slotted(y),
        "message": blas.Gemm(x, y),
        "ordered": OrderedDict(k=z),
    }
    assert found(space, chip) == {
        1: ("message.a", "state[…]", "x"),
        2: ("message.b", "slotted.weights", "layers[3]"),
        3: ("ordered['k']", "pair[1]"),
        4: ("state['k']",),
        5: ("state[3]",),
        6: ("model.weights",),
    }


def test_the_outputs_of_cells_come_last_and_once(chip: Chip) -> None:
    x = chip.ref(1)
    outputs = {5: x}
    space = {"_oh": outputs, "Out": outputs, "In": ["x"], "_": x, "__": x, "_5": x, "x": x}
    assert found(space, chip)[1] == ("x", "__", "_", "Out[5]")
    assert found({"Out": {}, "_5": x}, chip)[1] == ("_5",)


def test_names_are_told_apart_by_device_and_generation(chip: Chip) -> None:
    other, same_name = Chip("gpu1"), Chip("gpu0")
    old = chip.ref(1)
    chip.generation = 2
    space = {"old": old, "new": chip.ref(2), "far": other.ref(1), "foreign": same_name.ref(7)}
    assert held_in(space, [chip, other]) == {
        ("gpu0", 1): {1: ("old",)},
        ("gpu0", 2): {2: ("new",)},
        ("gpu1", 1): {1: ("far",)},
    }


def test_a_buffer_has_few_names_however_many_there_are(chip: Chip) -> None:
    x = chip.ref(1)
    assert len(found({f"x{i}": x for i in range(100)}, chip)[1]) == NAMED


def test_nothing_of_the_users_runs(chip: Chip) -> None:
    class Trap:
        """Fails whoever asks it for anything."""

        ref = chip.ref(9)

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

        @property
        def costly(self) -> Any:
            raise AssertionError

        def __repr__(self) -> str:
            raise AssertionError

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = object.__hash__

    class Items(list[Any]):
        """A list with an opinion."""

        def __getitem__(self, _: Any) -> Any:
            raise AssertionError

        __iter__ = __len__ = __getitem__  # type: ignore[assignment]

    class Table(dict[str, Any]):
        """A dict with one."""

        def items(self) -> Any:
            raise AssertionError

        __iter__ = __len__ = items

    trap = Trap()
    object.__getattribute__(trap, "__dict__")["kept"] = chip.ref(1)
    space = {"trap": trap, "keys": {trap: chip.ref(2)}, "items": Items([chip.ref(3)])}
    space["table"] = Table(k=chip.ref(4))
    assert found(space, chip) == {
        1: ("trap.kept",),
        2: ("keys[…]",),
        3: ("items[0]",),
        4: ("table['k']",),
    }


def test_a_search_keeps_nothing_alive(chip: Chip) -> None:
    space: dict[str, Any] = {"x": chip.ref(1), "layers": [chip.ref(2)], "model": Model(chip.ref(3))}
    looking = Names(lambda: space)
    assert looking.held([chip]) == {
        ("gpu0", 1): {1: ("x",), 2: ("layers[0]",), 3: ("model.weights",)}
    }
    gc.disable()
    try:
        space.clear()
        assert sorted(chip.freed) == [1, 2, 3]
    finally:
        gc.enable()


def test_a_search_is_short_however_large_the_namespace_is(chip: Chip) -> None:
    many = {f"x{i}": [None] * 100_000 for i in range(3)} | {f"y{i}": i for i in range(200_000)}
    space, took = many | {"x": chip.ref(1)}, []
    for _ in range(5):
        began = time.thread_time()
        assert held_in(space, [chip], limit_s=0.01)[("gpu0", 1)] == {1: ("x",)}
        took.append(time.thread_time() - began)
    assert min(took) < 0.1


def test_a_search_stops_at_its_limit(chip: Chip) -> None:
    assert held_in({"x": chip.ref(1)}, [chip], limit_s=-1.0) == {}


def test_the_names_are_looked_for_at_most_every_half_second(
    chip: Chip, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    space = {"x": chip.ref(1)}
    looking = Names(lambda: space)
    assert looking.held([chip]) == {("gpu0", 1): {1: ("x",)}}
    space["y"] = chip.ref(2)
    now += names.EVERY_S / 2
    assert looking.held([chip]) == {("gpu0", 1): {1: ("x",)}}
    now += names.EVERY_S / 2
    assert looking.held([chip]) == {("gpu0", 1): {1: ("x",), 2: ("y",)}}


def test_a_search_never_raises(chip: Chip) -> None:
    class Broken(Chip):
        def holds(self, ref: AccelRef) -> bool:
            raise RuntimeError(ref)

    def no_namespace() -> dict[str, Any]:
        raise RuntimeError("IPython is being taken down")

    broken = Broken()
    assert Names(lambda: {"x": broken.ref(1)}).held([broken]) == {}
    assert Names(no_namespace).held([chip]) == {}


def test_the_main_thread_may_change_everything_meanwhile(chip: Chip) -> None:
    space: dict[str, Any] = {"kept": chip.ref(1), "state": {}, "layers": []}
    stop = threading.Event()

    def change() -> None:
        i = 0
        while not stop.is_set():
            i += 1
            space[f"x{i % 50}"] = chip.ref(100 + i)
            space.pop(f"x{(i + 7) % 50}", None)
            space["state"][i % 50] = chip.ref(100 + i)
            space["state"].pop((i + 7) % 50, None)
            space["layers"] = [*space["layers"][-5:], None]

    thread = threading.Thread(target=change)
    thread.start()
    try:
        results = [found(space, chip) for _ in range(200)]
    finally:
        stop.set()
        thread.join()
    assert sum(result.get(1) == ("kept",) for result in results) > 150


scalars = st.none() | st.integers() | st.text()


@given(scalars | st.lists(scalars) | st.dictionaries(scalars, scalars))
def test_whatever_a_name_holds_its_path_leads_to_the_handle(value: Any) -> None:
    chip = Chip()
    ref = chip.ref(1)
    if isinstance(value, list):
        value.append(ref)
    elif isinstance(value, dict):
        value["here"] = ref
    else:
        value = ref
    ((name,),) = found({"thing": value}, chip).values()
    assert eval(name, {"thing": value}) is ref  # noqa: S307 - the name that was given back


def test_outside_ipython_there_is_no_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert notebook() is None
    assert Names().held([Chip()]) == {}
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert notebook() is None
    space = {"x": 1}
    shell = SimpleNamespace(user_ns=space)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert notebook() is space


def test_a_sample_learns_who_keeps_its_blocks_and_what_is_gone(chip: Chip) -> None:
    old, again = chip.ref(1), chip.ref(2)
    chip.generation = 2
    again.generation = 2  # as one that was made again: the device holds it
    space = {"old": old, "again": again, "view": chip.ref(3)}
    blocks = (Block((2, 3), 0, 8, "Gemm #1", "float32", (2,)), Block((4,), 8, 8, "Gemm #2", "", ()))
    sample = MemorySampled(
        device="gpu0", generation=2, used_bytes=16, total_bytes=None, blocks=blocks
    )
    put = Names(lambda: space).put(sample, [chip])
    assert [block.kept_by for block in put.blocks] == [("again", "view"), ()]
    assert put.stale == ((1, ("old",)),)
    assert Names(dict).put(sample, [chip]) is sample


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host", devices=1) as lab:
        yield lab


def test_real_handles_are_found_before_and_after_a_loss(lab: System) -> None:
    gpu = lab.devices[0]
    kept = gpu.put(np.ones(4))
    lost: AccelRef = gpu.run(np.add, kept, 1, writes=())
    lost.result()
    space: dict[str, Any] = {"kept": kept, "lost": [lost], "gpu": gpu, "np": np, "lab": lab}
    assert held_in(space, lab.devices) == {
        (gpu.name, 1): {kept.id: ("kept",), lost.id: ("lost[0]",)}
    }
    assert (handle_in(space, gpu, lost.id) is lost) is True
    assert handle_in(space, gpu, 99) is None
    with pytest.raises(AccelError):
        lab.inject("kill").result(timeout_s=20)
    gpu.ping().result(timeout_s=20)
    assert held_in(space, lab.devices) == {
        (gpu.name, 1): {lost.id: ("lost[0]",)},
        (gpu.name, 2): {kept.id: ("kept",)},
    }
