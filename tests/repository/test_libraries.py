"""Every library is there as a whole, and what is there by half is refused with where it belongs."""

import ast
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, get_type_hints

import numpy as np
import pytest

import accel_lab
from accel_lab import array, jit, module, rng
from accel_lab.backends import listed
from accel_lab.backends.host.device import HostBackend
from accel_lab.backends.libraries import makers
from accel_lab.backends.wgpu.support import SUPPORT as WGPU
from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import LibraryActor, handled_by, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, Spec
from accel_lab.compute.message.support import check, name_of
from accel_lab.context_process import _statistics
from accel_lab.errors import BackendUnavailable, InvalidArgument, UnsupportedDtype
from accel_lab.libraries import ACTORS
from accel_lab.libraries.authoring import default_actor
from accel_lab.libraries.authoring.registration import Kind, messages, require_registered
from accel_lab.library_modules import LIBRARIES, class_name
from tests.project import PACKAGE, ROOT

LACKED = {
    (library, "wgpu")
    for library in LIBRARIES
    if not any(of and name.startswith(f"{library}.") for name, of in WGPU.items())
}
"""Of which a backend has nothing, as its table says."""
PAIRS = sorted({*product(LIBRARIES, listed())} - LACKED)
OWNERS = {actor.library: actor for actor in ACTORS}


def source(folder: Path, name: str, main: str = "library") -> Path:
    """Return the file of what is one file or, with helpers, a folder that has it."""
    own = folder / name
    return own / f"{main}.py" if own.is_dir() else folder / f"{name}.py"


@pytest.mark.parametrize("backend", listed())
def test_messages_actors_and_table_fit(backend: str) -> None:
    table: Mapping[str, frozenset[str]]
    table = import_module(f"accel_lab.backends.{backend}.support").SUPPORT
    require_registered(messages(), ACTORS, table, backend)
    for name, dtypes in table.items():
        unknown = dtypes - {*NAMES, ""}
        assert not unknown, f"{name}: {unknown} is no dtype"


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_has_its_files_and_is_exported(library: str) -> None:
    having = [backend for backend in listed() if (library, backend) not in LACKED]
    for folder in ("libraries", *(f"backends/{backend}" for backend in having)):
        file = f"accel_lab/{folder}/{library}.py"
        assert source(PACKAGE / folder, library).exists(), f"{file} is missing"
    path = f"tests/contract/test_{library}.py"
    assert (ROOT / path).exists(), f"{path} is missing"
    assert library in accel_lab.__all__


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_the_same_wherever_it_is_imported_from(library: str) -> None:
    """None of its names leads to an empty package."""
    exported = getattr(accel_lab, library)
    assert getattr(import_module("accel_lab.libraries"), library) is exported
    room = import_module(f"accel_lab.libraries.{library}")
    promised = [name for name in vars(exported) if not name.startswith("_")]
    own = [name for name in promised if getattr(exported, name) is not getattr(room, name, None)]
    known = getattr(exported, "__all__", promised)
    assert set(own).isdisjoint(known)
    assert {kind.__name__ for kind in messages() if kind.library == library} <= set(vars(room))


def test_events_are_had_from_their_room() -> None:
    """As pages have taught it: `from accel_lab.compute import events`."""
    from accel_lab.compute import events

    facts = {
        name: one
        for name, one in vars(accel_lab.events).items()
        if isinstance(one, type) and one.__module__ == accel_lab.events.__name__
    }
    assert len(facts) > 10
    assert {name: getattr(events, name, None) for name in facts} == facts


@pytest.mark.parametrize(("library", "backend"), PAIRS)
def test_a_backend_has_a_class_for_every_library(library: str, backend: str) -> None:
    """Read from the source: most machines cannot open `cuda`."""
    path, wanted = source(PACKAGE / "backends" / backend, library), backend.title()
    made = [one.name for one in parsed(path).body if isinstance(one, ast.ClassDef)]
    assert class_name(library, wanted) in made, path.relative_to(ROOT)
    assert library in makers(backend, None)


@pytest.mark.parametrize(("library", "backend"), PAIRS)
def test_a_backend_has_a_method_for_each_default_handler(library: str, backend: str) -> None:
    path, actor = source(PACKAGE / "backends" / backend, library), OWNERS[library]
    wanted = class_name(library, backend.title())
    methods = methods_of(wanted, classes_beside(path))
    for kind, name in handled_by(actor).items():
        if getattr(actor, name).__module__ != default_actor.__name__:
            continue
        if backend == "wgpu" and not WGPU[name_of(kind)]:
            continue
        assert name in methods, f"{path.relative_to(ROOT)}: {wanted} has no {name}()"
        taken = [one.arg for one in methods[name].args.args]
        message = "_" if taken[1:2] == ["_"] else "m"  # it may have no use for it
        expected = ["self", message, *default_actor.parameters(kind)]
        assert taken == expected, f"{path.relative_to(ROOT)}: {wanted}.{name}"


def classes_beside(path: Path) -> dict[str, ast.ClassDef]:
    """Return the classes of a file, and of its folder if it is the main file of a library.

    Those are among them that both backends share: they stand in the library's own `evaluation`.
    """
    files = sorted(path.parent.glob("*.py")) if path.name == "library.py" else [path]
    files += sorted((PACKAGE / "libraries" / path.parent.name / "evaluation").glob("*.py"))
    bodies = [one for file in files for one in parsed(file).body]
    return {one.name: one for one in bodies if isinstance(one, ast.ClassDef)}


def methods_of(name: str, classes: Mapping[str, ast.ClassDef]) -> dict[str, ast.FunctionDef]:
    """Return the methods that a class has of its own or of its bases."""
    methods: dict[str, ast.FunctionDef] = {}
    for base in reversed(classes[name].bases):
        if isinstance(base, ast.Name) and base.id in classes:
            methods |= methods_of(base.id, classes)
    methods |= {one.name: one for one in classes[name].body if isinstance(one, ast.FunctionDef)}
    for one in classes[name].body:  # `gemm_strided_batched = gemm`
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Name):
            methods |= {str(ast.unparse(one.targets[0])): methods[one.value.id]}
    return methods


def test_a_class_is_given_the_device_that_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asking:
        def __init__(self, device: object) -> None:
            self.device = device

    made = SimpleNamespace(HostBlas=Asking)
    monkeypatch.setattr("accel_lab.backends.libraries.module_of", lambda *_: made)
    assert makers("host", "cpu0")["blas"]().device == "cpu0"


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@pytest.mark.parametrize("library", LIBRARIES)
def test_type_checkers_find_a_library(library: str) -> None:
    """They do not run `__getattr__`, which finds every library by its name."""
    line = f"    from accel_lab.libraries import {library} as {library}\n"
    assert line in (PACKAGE / "__init__.py").read_text()


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_host_meets_the_protocol(library: str) -> None:
    """mypy compares the signatures; this compares what is there."""
    protocol = get_type_hints(OWNERS[library]).get("lib", object)
    made = HostBackend(0).libraries[library]()
    promised = [name for name in vars(protocol) if not name.startswith("_")]
    assert [name for name in promised if not hasattr(made, name)] == []


# A library of one message, and what may be wrong with it.


class Cumsum(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=900):
    library: ClassVar[str] = "made_up"
    x: AccelRef

    def infer(self) -> Spec:
        return Spec(self.x.shape, self.x.dtype)


class Same(Operation[None], frozen=True, array_like=True, eq=False, tag=900):
    library: ClassVar[str] = "made_up"


class Low(Operation[None], frozen=True, array_like=True, eq=False, tag=90):
    library: ClassVar[str] = "made_up"


class Nowhere(Operation[None], frozen=True, array_like=True, eq=False, tag=901):
    pass


class Vague(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=902):
    library: ClassVar[str] = "made_up"


class Unreadable(Operation[None], frozen=True, array_like=True, eq=False, tag=904):
    library: ClassVar[str] = "made_up"
    low: AccelRef | float


class Untagged(Operation[None], frozen=True, array_like=True, eq=False):
    library: ClassVar[str] = "made_up"


def actor(*kinds: Kind) -> type[LibraryActor]:
    """Make an actor of the library `made_up` that handles these."""
    methods = {f"on_{kind.__name__}": handles(kind)(lambda *_: None) for kind in kinds}
    return type("MadeUpActor", (LibraryActor,), {"library": "made_up", **methods})


def twice() -> type[LibraryActor]:
    both = {"first": handles(Cumsum)(lambda *_: None), "second": handles(Cumsum)(lambda *_: None)}
    return type("MadeUpActor", (LibraryActor,), {"library": "made_up", **both})


ROW = {"made_up.Cumsum": frozenset({"float32"})}
WRONG: dict[str, tuple[Sequence[Kind], Sequence[Any], Mapping[str, frozenset[str]], str]] = {
    "no actor": ([Cumsum], [], ROW, r"no actor takes Cumsum .*@handles\(Cumsum\)"),
    "no handler": ([Cumsum], [actor()], ROW, r"no actor takes Cumsum .*@handles\(Cumsum\)"),
    "two handlers": (
        [Cumsum],
        [twice()],
        ROW,
        "MadeUpActor handles Cumsum twice: in first and in s",
    ),
    "two owners": ([Cumsum], [actor(Cumsum), actor()], ROW, "both own the library 'made_up'"),
    "an actor of none": (
        [Cumsum],
        [type("Own", (LibraryActor,), {})],
        ROW,
        "Own has no library: give it `library: ClassVar`",
    ),
    "no row": (
        [Cumsum],
        [actor(Cumsum)],
        {},
        r"made_up.Cumsum has no dtypes: give it `dtypes: ClassVar = .*/made_up/support.py",
    ),
    "no message": (
        [],
        [],
        ROW,
        r"has a row made_up.Cumsum, and no message .*give the",
    ),
    "tag twice": (
        [Cumsum, Same],
        [actor(Cumsum, Same)],
        {**ROW, "made_up.Same": frozenset()},
        r"Same and Cumsum both have tag=900",
    ),
    "tag of the core": ([Low], [actor(Low)], {}, r"Low has tag=90, .* below 100"),
    "no library": ([Nowhere], [actor(Nowhere)], {}, r"library '' and MadeUpActor of 'made_up'"),
    "no decoder": (
        [Unreadable],
        [actor(Unreadable)],
        {},
        r"no context could read Unreadable: .*AccelRef \| float.* in another way",
    ),
    "no infer": ([Vague], [actor(Vague)], {}, r"Vague answers with a buffer .*`infer`"),
}


def test_a_whole_library_is_content() -> None:
    require_registered([Cumsum], [actor(Cumsum)], ROW, "made_up")


@pytest.mark.parametrize("wrong", WRONG)
def test_half_a_library_is_refused_with_what_is_missing(wrong: str) -> None:
    kinds, actors, table, text = WRONG[wrong]
    with pytest.raises(TypeError, match=text):
        require_registered(kinds, actors, table, "made_up")


def test_a_library_that_the_backend_does_not_make_is_refused() -> None:
    with pytest.raises(BackendUnavailable, match=r"host\.device lacks 'made_up'.*add what makes"):
        Context(HostBackend(0), [actor(Cumsum)], None, 1, ROW, None)  # type: ignore[arg-type]


WITHOUT_A_DEVICE: dict[str, Callable[[Any], object]] = {
    "zeros": lambda wrong: array.zeros(wrong, 2),
    "full": lambda wrong: array.full(wrong, 2, 1.0),
    "words": rng.words,
    "integers": lambda wrong: rng.integers(wrong, 4),
    "uniform": rng.uniform,
    "normal": rng.normal,
    "gamma": lambda wrong: rng.gamma(wrong, 2),
    "generate": lambda wrong: rng.generate(wrong, "xorwow"),
    "sobol": lambda wrong: rng.sobol(wrong, 2),
    "permutation": lambda wrong: rng.permutation(wrong, 2),
    "Generator": rng.Generator,
    "compile": lambda wrong: jit.compile(wrong, "__global__ void f() {}", "f"),
    "build": lambda wrong: module.build(wrong, "__global__ void f() {}"),
    "load": lambda wrong: module.load(wrong, b"", kinds=("ptx",)),
    "binary": lambda wrong: module.binary(wrong, ""),
}


@pytest.mark.parametrize("function", WITHOUT_A_DEVICE)
def test_a_device_that_was_forgotten_is_named(function: str) -> None:
    with pytest.raises(InvalidArgument, match=r"a device comes first, .* and not \(2, 3\)"):
        WITHOUT_A_DEVICE[function]((2, 3))


def test_a_message_without_a_tag_is_refused_when_it_is_sent() -> None:
    with pytest.raises(InvalidArgument, match=r"Untagged has no tag.*class Untagged\(..., tag="):
        check(ROW, Untagged())


def test_a_row_without_dtypes_says_that_there_are_none() -> None:
    with pytest.raises(UnsupportedDtype, match=r"it has made_up\.Nothing of no dtype$"):
        check({"made_up.Nothing": frozenset()}, Nothing())


class Nothing(Operation[None], frozen=True, array_like=True, eq=False, tag=903):
    library: ClassVar[str] = "made_up"


class Counter(LibraryActor):
    def __init__(self, counters: Any) -> None:
        self.counters = counters

    def statistics(self) -> Mapping[str, int]:
        counted: Mapping[str, int] = self.counters()
        return counted


def test_a_library_that_cannot_count_does_not_end_the_heartbeats() -> None:
    assert _statistics(Counter(lambda: {"plans": np.int64(3)})) == {"plans": 3}
    for broken in (lambda: {"plans": 1 // 0}, lambda: {"plans": "three"}, lambda: None):
        assert _statistics(Counter(broken)) == {"statistics failed": 1}
