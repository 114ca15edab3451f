"""Make values of what a commit says: the other way than `Encoder`."""

import builtins
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec
import numpy as np

from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.arrays.named_dtype import named
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import Ref
from accel_lab.errors import AccelError, SessionDamaged, SessionError
from accel_lab.libraries.jit.kernel import Kernel
from accel_lab.libraries.jit.module_globals import Globals
from accel_lab.libraries.rng.generator import Generator
from accel_lab.session.buffers.kept import Family, kept_ref, node_of
from accel_lab.session.buffers.rebuilding import NEEDS_LEAVE, Rebuilding
from accel_lab.session.plain.encoder import BIT_GENERATORS, OWN, Node, fields_of
from accel_lab.session.plain.randoms import set_states
from accel_lab.session.store.commit import Commit
from accel_lab.session.store.folder import Folder

ALWAYS = ("numpy", "accel_lab")
"""The modules that are bound without leave: both are loaded."""
_UNFIT = (TypeError, ValueError, LookupError, AttributeError, RecursionError)
"""What is raised where a commit holds something else than was written."""
DEFINED = object()
"""In place of a function or a class that is to be defined again."""


class NeedsLeave(Exception):
    """Something cannot be had without leave to run code; the text says why."""


class NeedsCells(Exception):
    """Something was an object of `%%gpu` cells, which have to run again; the text says so."""


class Decoder:
    """Makes the values of one commit; what its names share they share again.

    Parameters:
        device: returns the device that stands for a recorded one.
        system: what stands for the session.
        path: of the commit, for errors.
        may_run: whether code of the folder may run, and modules be imported.
    """

    def __init__(
        self,
        commit: Commit,
        folder: Folder,
        rebuilding: Rebuilding,
        device: Callable[[str], Device],
        system: object,
        *,
        may_run: bool,
    ) -> None:
        self._commit = commit
        self._folder = folder
        self._rebuilding = rebuilding
        self._device = device
        self._system = system
        self._may_run = may_run
        self._done: dict[int, Any] = {}
        self._families: dict[Any, Family] = {}
        self._members = [
            (node[2], node[5])
            for node in (*commit.objects, *commit.names.values())
            if isinstance(node, list) and len(node) > 5 and node[0] == "made"  # noqa: PLR2004
        ]

    def value(self, name: str) -> Any:
        """Return what a name stood for; `DEFINED` for what a cell's text defines.

        Raises:
            NeedsLeave: it needs leave to run code.
            NeedsCells: it needs `%%gpu` cells to run again.
            SessionDamaged: what the folder has of it is damaged or missing; or it cannot be made.
        """
        try:
            return self._value(self._commit.names[name])
        except (NeedsLeave, NeedsCells, AccelError):
            raise
        except _UNFIT as error:
            raise self._damaged(f"what it has of {name!r} is none: {error!r}") from error

    def set_randoms(self) -> None:
        """Have the global generators of this process go on where they were.

        Raises:
            SessionDamaged: the commit has no states of theirs.
        """
        try:
            set_states(self._value(self._commit.randoms))
        except _UNFIT as error:
            raise self._damaged(f"it has no states of generators: {error!r}") from error

    def _damaged(self, why: str) -> SessionDamaged:
        path = str(self._folder.commit_path(self._commit.number))
        return SessionDamaged(f"{path} is damaged: {why}", path=path)

    def messages(self, key: str) -> dict[tuple[str, str, int], str]:
        """Return the messages of a recipe: session, device and number, with what they are.

        Raises:
            AccelError: the folder is damaged.
        """
        return self._rebuilding.messages(key)

    def is_object(self, name: str) -> bool:
        """Whether a name stood for an object of `%%gpu` cells, plain or not."""
        node = self._commit.names.get(name)
        found = self._commit.objects[node[1]] if isinstance(node, list) and node[0] == "o" else node
        return isinstance(found, list) and found[0] in ("resident", "copy")

    def needs_code(self, name: str) -> bool:
        """Whether something that a name stands for is made by code when it is used."""
        ahead, seen = [self._commit.names[name]], set[int]()
        while ahead:
            node = ahead.pop()
            if not isinstance(node, list) or not node:
                continue
            if node[0] == "large":
                node = self._large(node[1])
            if node[0] == "made" and node[-1]:
                return True
            if node[0] == "o":
                if node[1] not in seen:
                    seen.add(node[1])
                    ahead.append(self._commit.objects[node[1]])
            else:
                ahead += node[1:]
        return False

    def _value(self, node: Node) -> Any:
        if not isinstance(node, list):
            return node
        if node[0] == "text":
            return self._bytes(node[1]).decode(errors="surrogatepass")
        at = node[1]
        if at not in self._done:
            made = self._object(at, self._commit.objects[at])
            self._done.setdefault(at, made)
        return self._done[at]

    def _bytes(self, node: Node) -> bytes:
        return node if isinstance(node, bytes) else self._folder.content(node)

    def _large(self, key: str) -> list[Any]:
        """Return an object that is a content of its own."""
        found: list[Any] = msgspec.msgpack.decode(self._folder.content(key), type=list[Any])
        return found

    def _object(self, at: int, node: list[Any]) -> Any:
        word, *parts = node if node[0] != "large" else self._large(node[1])
        if word == "list":
            filled: list[Any] = []
            self._done[at] = filled
            filled += map(self._value, parts)
            return filled
        if word == "dict":
            table: dict[Any, Any] = {}
            self._done[at] = table
            for key, value in zip(parts[::2], parts[1::2], strict=True):
                table[self._value(key)] = self._value(value)
            return table
        return getattr(self, _MAKERS[word])(*parts)

    # One method for each word, see `_MAKERS`.

    def _tuple(self, *parts: Node) -> Any:
        return tuple(map(self._value, parts))

    def _set(self, *parts: Node) -> Any:
        return set(map(self._value, parts))

    def _frozenset(self, *parts: Node) -> Any:
        return frozenset(map(self._value, parts))

    def _bytearray(self, data: Node) -> Any:
        return bytearray(self._bytes(data))

    def _int(self, text: str) -> Any:
        return int(text, 0)

    def _complex(self, real: float, imag: float) -> Any:
        return complex(real, imag)

    def _range(self, *parts: Node) -> Any:
        return range(*map(self._value, parts))

    def _slice(self, *parts: Node) -> Any:
        return slice(*map(self._value, parts))

    def _ellipsis(self) -> Any:
        return ...

    def _array(self, dtype: str, shape: list[int], order: str, data: Node) -> Any:
        if dtype == "object":
            array = np.empty(shape, object)
            for at, one in enumerate(self._value(data)):
                array.flat[at] = one
            return array
        kind = numpy_dtype(dtype) if dtype in NAMES else np.dtype(dtype)
        flat = np.frombuffer(self._bytes(data), kind)
        return (flat.reshape(shape[::-1]).T if order == "F" else flat.reshape(shape)).copy("A")

    def _number(self, *parts: Any) -> Any:
        return self._array(*parts)[()]

    def _dtype(self, text: str) -> Any:
        return numpy_dtype(text) if text in NAMES else np.dtype(text)

    def _random(self, bits: str, state: Node) -> Any:
        if bits not in BIT_GENERATORS:
            raise ValueError(f"there is no bit generator {bits!r}")
        made = getattr(np.random, bits)(0)
        made.state = self._value(state)
        return np.random.Generator(made)

    def _session(self) -> Any:
        return self._system

    def _made(
        self,
        name: str,
        id_: int,
        shape: Any,
        dtype: Any,
        key: str,
        code: bool,  # noqa: FBT001 - a node
    ) -> Any:
        def cook() -> dict[int, Ref[Any]]:
            return self._rebuilding.cook(key, {one for one, of in self._members if of == key})

        family = self._families.setdefault(key, Family(cook))
        node = ["made", name, id_, shape, dtype, key, code]
        return kept_ref(self._device(name), family, id_, node, shape, dtype)

    def _kept(self, name: str, id_: int, shape: Any, dtype: str, key: str, session: str) -> Any:
        def thaw() -> dict[int, Ref[Any]]:
            return {id_: self._rebuilding.thaw(key, shape, dtype, name)}

        family = self._families.setdefault((session, name, id_), Family(thaw))
        node = ["kept", name, id_, shape, dtype, key, session]
        return kept_ref(self._device(name), family, id_, node, shape, dtype)

    def _named_dtype(self, name: str) -> Any:
        return named(name)

    def _generator(self, device: str, state: Node) -> Any:
        made = Generator(self._device(device), 0)
        made.state = self._value(state)
        return made

    def _kernel(self, device: str, *parts: Node) -> Any:
        source, name, options, headers, variables, ref = map(self._value, parts)
        node = node_of(ref)  # whatever is no handle has none, and would be compiled at once
        if node is None:
            raise ValueError("a kernel has no handle")
        if not self._may_run:
            ref = kept_ref(self._device(device), Family(_refuse), 0, node, None, None)
        return Kernel(self._device(device), source, name, options, headers, variables, ref=ref)

    def _globals(self, device: str, declared: Node, refs: Node) -> Any:
        made = Globals(self._device(device), self._value(declared))
        made.update(self._value(refs))
        return made

    def _copy(self, value: Node) -> Any:
        return self._value(value)

    def _resident(self, _: str, kind: str) -> Any:
        raise NeedsCells(f"a {kind} of %%gpu cells, which run again with open(…, run_code=True)")

    def _struct(self, module: str, qualname: str, *parts: Node) -> Any:
        if not module.startswith(OWN):
            raise ValueError(f"{module} is none of accel_lab's")
        kind = _found(import_module(module), qualname)
        fields = fields_of(kind) if isinstance(kind, type) else None
        if fields is None or len(fields) != len(parts):
            raise ValueError(f"{module}.{qualname} is no record of {len(parts)} fields")
        values = list(map(self._value, parts))
        if issubclass(kind, tuple):
            return tuple.__new__(kind, values)
        made = object.__new__(kind)
        for field, value in zip(fields, values, strict=True):
            object.__setattr__(made, field, value)
        return made

    def _module(self, name: str) -> Any:
        if name.partition(".")[0] in ALWAYS and name in sys.modules:
            return sys.modules[name]
        return self._imported(name)

    def _from(self, module: str, qualname: str) -> Any:
        if module == builtins.__name__ and self._may_run:
            return _found(builtins, qualname)
        return _found(self._imported(module), qualname)

    def _imported(self, name: str) -> Any:
        if not self._may_run:
            raise NeedsLeave(f"it is of the module {name}, which needs leave to be imported")
        try:
            return import_module(name)
        except Exception as error:
            raise NeedsLeave(f"the module {name} cannot be imported: {error}") from error

    def _defined(self, _: str) -> Any:
        if not self._may_run:
            raise NeedsLeave("it is defined by a cell's text, which needs leave to run")
        return DEFINED


_MAKERS = {
    word: f"_{word.replace(' ', '_')}"
    for word in (
        *("tuple", "set", "frozenset", "bytearray", "int", "complex", "range", "slice"),
        *("array", "number", "dtype", "random", "session", "made", "kept", "named dtype"),
        *("generator", "kernel", "globals", "copy", "struct", "module", "from", "defined"),
        *("bytes", "device", "resident"),
    )
} | {"...": "_ellipsis"}


def _refuse() -> dict[int, Ref[Any]]:
    raise SessionError(NEEDS_LEAVE)


def _found(where: Any, qualname: str) -> Any:
    for part in qualname.split("."):
        where = getattr(where, part)
    return where
