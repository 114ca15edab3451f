"""The fields of every error, through the real wire of a host context, and into the journal."""

import importlib
import pickle
import pkgutil
import sys
import threading
from collections.abc import Callable, Iterator
from copy import copy
from itertools import count
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import cloudpickle
import numpy as np
import pytest

import accel_lab
from accel_lab import AccelRef, Device, System, array
from accel_lab.compute.execution.context import Context
from accel_lab.compute.message.service import in_context
from accel_lab.compute.message.unwritten import Refusal
from accel_lab.compute.wire.codec import FRAME_LIMIT, encode_reports
from accel_lab.compute.wire.failure import pack, unpack
from accel_lab.errors import AccelError, ContextLost, DependencyFailed, LibraryError, UserCodeError
from accel_lab.errors.declared_fields import KEPT_HERE

WAIT = 60.0
NO_ATTRIBUTES = {"args", "directive", "fields", *KEPT_HERE}
ROOMS = ("compute", "libraries", "journal", "views", "actor")


class SingularMatrix(LibraryError, fields=("pivot", "matrix", "found")):
    """An error that a library brings, which restarts nothing."""

    directive = AccelError.directive
    remedy = "Add a small number to the diagonal."
    pivot: int
    matrix: AccelRef | int = 0
    found: Any = None


class Arms:
    """Leads a function that runs in a context to that context."""

    def __init__(self, context: Context) -> None:
        self.context = context


class Failing:
    """A library whose next copy fails."""

    def __init__(self, lib: Any, error: AccelError) -> None:
        self.lib = lib
        self.errors = [error]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lib, name)

    def copy(self, *arrays: Any) -> None:
        if self.errors:
            raise self.errors.pop()
        self.lib.copy(*arrays)


def arm(arms: Arms, error: AccelError, matrix: int = 0) -> None:
    """Have the next copy fail; with a buffer of the context's in the error, if one is named."""
    actor = arms.context.actors["array"]
    if matrix:
        assert isinstance(error, SingularMatrix)
        error.matrix = arms.context.table.mention(matrix)
    actor.lib = Failing(actor.lib, error)


def arm_with(arms: Arms, make: Callable[[], AccelError]) -> None:
    arm(arms, make())


def fail(error: AccelError) -> None:
    raise error


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", 2) as opened:
        yield opened


@pytest.fixture
def cpu(lab: System) -> Device:
    return lab.devices[0]


def failed_copy(cpu: Device) -> AccelError:
    """Return what a copy fails with."""
    reply = array.copy(cpu.put(np.ones(2)))
    with pytest.raises(AccelError) as caught:
        reply.result(WAIT)
    assert cpu.generation == 1
    return caught.value


def from_handler(cpu: Device, error: AccelError, matrix: int = 0) -> AccelError:
    """Return an error as it arrives when a library's handler raises it."""
    cpu.run(arm, in_context(Arms), error, matrix).result(WAIT)
    return failed_copy(cpu)


def from_function(cpu: Device, error: AccelError) -> BaseException | None:
    """Return an error as it arrives when a user's function raises it."""
    with pytest.raises(UserCodeError) as caught:
        cpu.run(fail, error).result(WAIT)
    return caught.value.__cause__


def kinds(root: type[AccelError] = AccelError) -> Iterator[type[AccelError]]:
    if root is AccelError:
        yield root
        for room in ROOMS:
            path = str(Path(accel_lab.__file__).parent / room)
            for module in pkgutil.walk_packages([path], f"accel_lab.{room}."):
                importlib.import_module(module.name)
    for kind in root.__subclasses__():
        if kind.__module__.startswith("accel_lab."):
            yield kind
            yield from kinds(kind)


KINDS = [*dict.fromkeys(kinds()), SingularMatrix]


def attributes(kind: type[AccelError]) -> list[str]:
    """Return what instances have, declared or not, less what an exception has anyway."""
    found = set(kind.fields)
    for base in kind.__mro__:
        if base.__module__ != "builtins":
            found |= {
                name
                for name, value in vars(base).items()
                if name[:1] != "_" and not hasattr(type(value), "__get__")
            }
    return sorted(found - NO_ATTRIBUTES)


def distinct(kind: Any, numbers: Iterator[int]) -> Any:
    """Return a value of a type that no other has."""
    number, origin, parts = next(numbers), get_origin(kind), get_args(kind)
    if kind in (int, float) or (int in parts and AccelRef in parts):
        return number
    if kind in (bool, str):
        return kind(f"text {number}, é")
    if origin is tuple and parts[-1] is Ellipsis:
        return tuple(distinct(parts[0], numbers) for _ in range(3))
    if origin is tuple:
        return tuple(distinct(part, numbers) for part in parts)
    if origin is dict:
        return {distinct(parts[0], numbers): distinct(parts[1], numbers)}
    if kind is Any:
        return (Refusal(number, number, number), 1j * number, frozenset({b"\xff"}))
    pytest.fail(f"say here what a distinctive {kind} is")


def filled(kind: type[AccelError]) -> AccelError:
    """Return an error that has a value of its own for each attribute."""
    hints, numbers = get_type_hints(kind), count(7)
    names = attributes(kind)
    values = {name: distinct(hints.get(name, str), numbers) for name in names}
    error = kind("it failed", **{name: values[name] for name in kind.fields})
    for name in names:
        setattr(error, name, values[name])
    return error


def told(error: BaseException | None, kind: type[AccelError]) -> dict[str, Any]:
    assert type(error) is kind
    return {name: getattr(error, name) for name in attributes(kind)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_arrives_with_all_its_attributes(lab: System, kind: type[AccelError]) -> None:
    error = filled(kind)
    whole = told(error, kind)
    values = list(map(repr, whole.values()))
    assert len(set(values)) == len(values)
    pickled = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
    for twin in (error.copy(), copy(error), pickled):
        assert told(twin, kind) == whole
        assert twin.args == error.args
    cpu = lab.devices[len(kind.__name__) % 2]  # few restarts of a library are allowed
    arrived = from_handler(cpu, error)
    assert told(arrived, kind) == whole
    assert "it failed" in str(arrived)
    assert told(from_function(cpu, error), kind) == whole


def test_an_error_without_values_of_its_own_arrives_with_those_of_its_class(cpu: Device) -> None:
    arrived = from_handler(cpu, SingularMatrix("no inverse", pivot=3))
    assert isinstance(arrived, SingularMatrix)
    assert (arrived.pivot, arrived.matrix, arrived.library) == (3, 0, "")
    assert arrived.remedy == SingularMatrix.remedy
    assert "remedy" not in vars(arrived)


def test_a_buffer_in_a_field_arrives_as_its_number(cpu: Device) -> None:
    ref = cpu.put(np.eye(2))
    arrived = from_handler(cpu, SingularMatrix("no inverse", pivot=3), ref.id)
    assert isinstance(arrived, SingularMatrix)
    assert arrived.matrix == ref.id
    assert arrived.__notes__ == [note for note in arrived.__notes__ if note.startswith("in Copy")]


def test_a_field_that_is_of_no_use_to_the_notebook_is_answered_too(cpu: Device) -> None:
    error = DependencyFailed("buffer 3 was not written", unwritten=([],))
    arrived = from_handler(cpu, error)
    assert "buffer 3 was not written" in str(arrived)


def locked() -> AccelError:
    return SingularMatrix("no inverse", pivot=3, found=threading.Lock())


class Leaving:
    """Exits wherever somebody looks at it."""

    def __reduce__(self) -> Any:
        raise SystemExit

    __repr__ = __reduce__


def leaving() -> AccelError:
    return SingularMatrix("no inverse", pivot=3, found=[Leaving()])


def endless() -> AccelError:
    found: list[Any] = []
    found.append(found)
    return SingularMatrix("no inverse", pivot=3, found=found)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (locked, "<unlocked _thread.lock"),
        (leaving, "<a list whose repr raised SystemExit>"),
        (endless, "[[...]]"),
    ],
)
def test_what_cannot_travel_arrives_as_its_repr(
    cpu: Device, make: Callable[[], AccelError], said: str
) -> None:
    cpu.run(arm_with, in_context(Arms), make).result(WAIT)
    with pytest.raises(UserCodeError) as caught:
        cpu.run(lambda: fail(make())).result(WAIT)
    for arrived in failed_copy(cpu), caught.value.__cause__:
        assert isinstance(arrived, SingularMatrix)
        assert arrived.pivot == 3
        assert str(arrived.found).startswith(said)
        assert any(note.startswith("its found is a repr: a ") for note in arrived.__notes__)


def undeclared() -> AccelError:
    error = SingularMatrix("no inverse", pivot=3)
    vars(error)["rank"] = 1
    return error


def test_an_attribute_that_is_not_declared_is_told_of(cpu: Device) -> None:
    cpu.run(arm_with, in_context(Arms), undeclared).result(WAIT)
    arrived = failed_copy(cpu)
    assert not hasattr(arrived, "rank")
    (note,) = [note for note in arrived.__notes__ if "rank" in note]
    assert note == "its rank stayed behind: SingularMatrix does not declare it among its fields"


def test_large_fields_leave_room_for_the_others() -> None:
    rows = tuple((n, "x" * 900) for n in range(2000))
    error = SingularMatrix("no inverse", pivot=3, found=rows, name="y" * 3_000_000)
    failure = pack(7, "Solve #7", error, 0)
    assert len(encode_reports([failure])) < FRAME_LIMIT * 3 // 4
    arrived = unpack(failure, None)
    assert isinstance(arrived, SingularMatrix)
    assert arrived.pivot == 3
    assert arrived.found == rows[-len(arrived.found) :]
    assert 100 < len(arrived.found) < 2000
    assert arrived.name.startswith("yyy")
    assert " bytes … y" in arrived.name
    assert f"of its found the last {len(arrived.found)} of 2000 came along" in arrived.__notes__
    image = SingularMatrix("no inverse", pivot=3, found=np.zeros(1 << 22))
    arrived = unpack(pack(7, "Solve #7", image, 0), None)
    assert isinstance(arrived, SingularMatrix)
    assert arrived.found.startswith("array([0., 0.")


MODULE = """
from accel_lab.errors import LibraryError

class Rejected(LibraryError, fields=("row",)):
    remedy = "Give another row."
    row: int

class Thing:
    pass

def reject():
    raise Rejected("no", library="mine", row=5)

def rejected():
    return Rejected("no", library="mine", row=5)

def of_a_thing():
    return LibraryError("no", library="mine", name=Thing())
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "errors_of_mine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("errors_of_mine")
    sys.modules.pop("errors_of_mine", None)


def test_an_error_of_a_module_of_the_users_arrives_whole(mine: Any) -> None:
    with System("host") as lab:
        cpu = lab.devices[0]
        cpu.run(arm_with, in_context(Arms), mine.rejected).result(WAIT)
        arrived = failed_copy(cpu)
        assert (type(arrived), vars(arrived)["row"]) == (mine.Rejected, 5)
        with pytest.raises(UserCodeError) as caught:
            cpu.run(mine.reject).result(WAIT)
        assert type(caught.value.__cause__) is mine.Rejected
        assert vars(caught.value.__cause__)["row"] == 5


def test_an_error_whose_module_is_not_here_arrives_as_its_base(
    mine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [pack(7, "Solve #7", make(), 0) for make in (mine.rejected, mine.of_a_thing)]
    del sys.modules["errors_of_mine"]
    monkeypatch.setattr(sys, "path", [])
    of_base, of_thing = (unpack(failure, None) for failure in failures)
    assert type(of_base) is LibraryError
    assert (of_base.library, vars(of_base)["row"]) == ("mine", 5)
    (note,) = [note for note in of_base.__notes__ if "Rejected" in note]
    assert note.startswith("it is a Rejected, which cannot be loaded here: ModuleNotFoundError")
    assert type(of_thing) is LibraryError
    assert of_thing.name.startswith("<errors_of_mine.Thing object")
    assert any(note.startswith("its name is a repr: it cannot be") for note in of_thing.__notes__)


def test_an_error_of_a_cell_arrives_as_the_cells_own_class(cpu: Device) -> None:
    names: dict[str, Any] = {"AccelError": AccelError, "__name__": "__main__"}
    body = "class Mine(AccelError, fields=('pivot',)):\n    pivot: int = 1\n"
    exec(body, names)  # noqa: S102 - as a notebook does
    kind = names["Mine"]
    arrived = from_handler(cpu, kind("no", pivot=4))
    assert type(arrived) is kind
    assert vars(arrived)["pivot"] == 4
    assert from_function(cpu, kind("no")) is not None
    assert cloudpickle.loads(cloudpickle.dumps(kind)).fields == ("remedy", "pivot")


def test_the_journal_keeps_the_fields_of_a_failure() -> None:
    with System("host") as lab:
        cpu = lab.devices[0]
        ref = cpu.put(np.eye(2))
        error = SingularMatrix(
            "no inverse", pivot=3, found=("x" * 5000, 2**70), name="\udcff", remedy="Do."
        )
        from_handler(cpu, error, ref.id)
        (failed,) = [entry.failure for entry in lab.journal.filter(failed=True)]
    assert failed is not None
    assert (failed.kind, failed.text) == ("SingularMatrix", "no inverse")
    assert failed.fields.keys() == {"pivot", "matrix", "found", "name", "remedy"}
    assert (failed.fields["pivot"], failed.fields["matrix"]) == (3, ref.id)
    assert (failed.fields["name"], failed.fields["remedy"]) == ("\\udcff", "Do.")
    long, number = failed.fields["found"]
    assert long.startswith("xxx")
    assert " bytes … xxx" in long
    assert len(long) < 200
    assert number == repr(2**70)


def test_an_explanation_has_what_the_loss_had() -> None:
    with System("host") as lab:
        cpu = lab.devices[0]
        with pytest.raises(ContextLost) as caught:
            lab.inject("poison").result(WAIT)
        assert caught.value.recent
        lab.ready(timeout_s=WAIT)
        explanation = lab.explain()
    assert explanation.device == cpu.name
    assert explanation.fields["recent"] == list(caught.value.recent)


def test_a_failure_that_comes_of_another_keeps_what_the_context_says() -> None:
    refusals = (Refusal(3, 2, 1),)
    failure = pack(
        7, "Copy #7", DependencyFailed("buffer 3 was not written", unwritten=refusals), 0
    )
    root = LibraryError("thirteen")
    arrived = unpack(failure, root)
    assert isinstance(arrived, DependencyFailed)
    assert arrived.unwritten == refusals
    assert arrived.__cause__ is root
    assert arrived.remedy == f"Fix the first failure: {root.remedy}"
