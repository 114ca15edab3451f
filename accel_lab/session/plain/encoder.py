"""Turn what the names of a notebook stand for into plain data, and refuse what is none.

Numbers, texts and None are themselves. All else is an object: it is `["o", position]` wherever it
is named, so that two names of one list are two names of one list again, and `objects[position]`
says what it is, as a list that begins with a word. Nothing here is a pickle: to read it runs
nothing.
"""

import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Protocol

import msgspec
import numpy as np

from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype
from accel_lab.compute.arrays.named_dtype import NamedDType
from accel_lab.compute.cells.plain_data import thawed
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import Ref
from accel_lab.display.sizes import size
from accel_lab.libraries.jit.kernel import Kernel
from accel_lab.libraries.jit.module_globals import Globals
from accel_lab.libraries.rng.generator import Generator
from accel_lab.notebook.object_ref import ObjectRef
from accel_lab.session.plain.secret import Secrets

Node = Any
_encode = msgspec.msgpack.Encoder().encode
OWN = "accel_lab."
LARGE_BYTES = 256
"""A text or an array of more than this is a content of its own."""
MANY = 1000
"""Of so many parts a container is a content of its own."""
MOST_BYTES = 1 << 30
MOST_ITEMS = 1_000_000
_SMALL = 1 << 63
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")
_SEQUENCES: dict[Any, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}


class NotKept(Exception):
    """A value cannot be kept; the text says why."""


class Kept(Protocol):
    """Where encoded values go, and what is known of the devices."""

    def keep(self, data: bytes | memoryview) -> str:
        """Keep bytes, and return their key."""

    def ref(self, ref: Ref[Any]) -> Node:
        """Return what tells how to have a buffer again; raises NotKept."""

    def device(self, device: Device) -> str:
        """Return the name of a device of the session; raises NotKept."""

    def definition(self, name: str, value: Any) -> bool:
        """Whether the text of a cell is known that defines this."""


class Encoder:
    """Encodes values that may share parts.

    Attributes:
        objects: what they have named.

    Parameters:
        secrets: what must not be kept; None where nothing is.
        system: stands for the session itself.
    """

    def __init__(self, kept: Kept, secrets: Secrets | None, system: object) -> None:
        self.objects: list[Node] = []
        self._kept = kept
        self._secrets = secrets
        self._system = system
        self._known: dict[int, tuple[int, Any]] = {}  # with the value, or its id would be another's
        self._left = 0

    def encode(self, name: str, value: Any) -> Node:
        """Return what a name stands for.

        Raises:
            NotKept: it cannot be kept; says why.
        """
        self._left = MOST_ITEMS
        count = len(self.objects)
        try:
            return self._node(name, value)
        except RecursionError:
            self._forget(count)
            raise NotKept("it is nested too deeply") from None
        except RuntimeError as error:  # a thread changes it meanwhile
            self._forget(count)
            raise NotKept(f"it cannot be read: {error}") from None
        except NotKept:
            self._forget(count)
            raise

    def add(self, said: list[Node]) -> Node:
        """Return what stands for an object of which it is known what is said, which names none."""
        self.objects.append(said)
        return ["o", len(self.objects) - 1]

    def _forget(self, count: int) -> None:
        """Forget the objects of a value that is not kept."""
        del self.objects[count:]
        self._known = {of: (at, one) for of, (at, one) in self._known.items() if at < count}

    def _node(self, name: str, value: Any) -> Node:
        self._left -= 1
        if self._left < 0:
            raise NotKept(f"it has more than {MOST_ITEMS:,} parts")
        kind = type(value)
        if value is None or kind is bool or kind is float:
            return value
        if kind is int and -_SMALL <= value < _SMALL:
            return value
        if kind is str:
            return self._text(name, value)
        known = self._known.get(id(value))
        if known is not None:
            if self.objects[known[0]] is None and kind not in (list, dict):
                raise NotKept(f"a {kind.__name__} in it holds itself")
            return ["o", known[0]]
        at = len(self.objects)
        self.objects.append(None)
        self._known[id(value)] = at, value
        node = self._object(name, value)
        if len(node) > MANY:  # a content, for it may be the same in the next commits
            node = ["large", self._kept.keep(_encode(node))]
        self.objects[at] = node
        return ["o", at]

    def _refuse_secret(self, name: str, text: str) -> None:
        if self._secrets is not None and (why := self._secrets.why(name, text)):
            raise NotKept(why)

    def _text(self, name: str, text: str) -> Node:
        self._refuse_secret(name, text)
        if len(text) <= LARGE_BYTES:
            try:
                text.encode()
            except UnicodeEncodeError:
                return ["text", self._bytes(text.encode(errors="surrogatepass"))]
            return text
        return ["text", self._bytes(text.encode(errors="surrogatepass"))]

    def _bytes(self, data: bytes | memoryview) -> Node:
        """Return bytes as they are, or the key of many."""
        nbytes = len(data) if isinstance(data, bytes) else data.nbytes
        if nbytes > MOST_BYTES:
            raise NotKept(f"it is of {size(nbytes)}, and a session keeps {size(MOST_BYTES)} of one")
        return bytes(data) if nbytes <= LARGE_BYTES else self._kept.keep(data)

    def _object(self, name: str, value: Any) -> Node:
        for encode in (self._plain, self._numpys, self._ours, self._named):
            if (node := encode(name, value)) is not None:
                return node
        kind = type(value)
        where = "" if kind.__module__ == "builtins" else f" of {kind.__module__}"
        raise NotKept(f"a {kind.__qualname__}{where} is no plain data")

    def _plain(self, name: str, value: Any) -> Node:  # noqa: PLR0911 - one for each type
        """Encode what is Python's own."""
        kind: Any = type(value)
        if (word := _SEQUENCES.get(kind)) is not None:
            return [word, *[self._node(name, one) for one in list(value)]]
        if kind is dict:
            pairs = list(value.items())
            return ["dict", *[part for key, one in pairs for part in self._pair(name, key, one)]]
        if kind is bytes or kind is bytearray:
            self._refuse_secret(name, bytes(value[:MOST_ITEMS]).decode("latin-1"))
            return [kind.__name__, self._bytes(bytes(value))]
        if kind is int:
            return ["int", str(value) if value.bit_length() < LARGE_BYTES else hex(value)]
        if kind is complex:
            return ["complex", value.real, value.imag]
        if kind is range or kind is slice:
            parts = value.start, value.stop, value.step
            return [kind.__name__, *[self._node(name, one) for one in parts]]
        if value is Ellipsis:
            return ["..."]
        return None

    def _pair(self, name: str, key: Any, value: Any) -> Iterator[Node]:
        yield self._node(name, key)
        yield self._node(key if type(key) is str else name, value)

    def _numpys(self, name: str, value: Any) -> Node:
        """Encode arrays, numbers, dtypes and generators of NumPy."""
        kind = type(value)
        if kind is np.ndarray or isinstance(value, np.generic):
            word = "array" if kind is np.ndarray else "number"
            return [word, *self._array(name, np.asarray(value))]
        if isinstance(value, np.dtype):
            return ["dtype", _dtype_text(value)]
        if kind is np.random.Generator:
            bits = value.bit_generator
            known = getattr(np.random, type(bits).__name__, None)
            if type(bits).__name__ in BIT_GENERATORS and known is type(bits):
                return ["random", type(bits).__name__, self._node("", bits.state)]
        return None

    def _array(self, name: str, array: Any) -> list[Node]:
        if array.dtype.hasobject:
            return ["object", list(array.shape), "C", self._node(name, array.ravel().tolist())]
        if array.dtype.kind in "US" and array.size < MOST_ITEMS:
            for text in array.ravel().tolist():
                self._refuse_secret(name, str(text))
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        flat = np.ascontiguousarray(array.T if order == "F" else array)
        data = flat.reshape(-1).view(np.uint8).data if flat.size and flat.itemsize else b""
        return [_dtype_text(array.dtype), list(array.shape), order, self._bytes(data)]

    def _ours(self, name: str, value: Any) -> Node:  # noqa: PLR0911 - one for each type
        """Encode what is accel_lab's."""
        if value is self._system:
            return ["session"]
        if isinstance(value, Ref):
            return self._kept.ref(value)
        if isinstance(value, NamedDType):
            return ["named dtype", str(value)]
        if isinstance(value, Device):
            return ["device", self._kept.device(value)]
        if isinstance(value, Generator):
            return ["generator", self._kept.device(value.device), self._node("", dict(value.state))]
        if isinstance(value, Kernel):
            parts = value.source, value.name, value.options, value.headers, value.globals, value.ref
            device = self._kept.device(value.device)
            return ["kernel", device, *[self._node("", part) for part in parts]]
        if isinstance(value, Globals):
            declared = None if value.declared is None else dict(value.declared)
            refs = self._node("", dict(value))
            return ["globals", self._kept.device(value.device), self._node("", declared), refs]
        if isinstance(value, ObjectRef):
            return self._resident(name, value)
        return self._struct(value)

    def _resident(self, name: str, value: ObjectRef) -> Node:
        """Encode an object of a `%%gpu` cell: a copy where it is plain, else that it was there."""
        if value.copy is not None:
            return ["copy", self._node(name, thawed(value.copy))]
        device = self._kept.device(value.device)
        if value.dropped or value.generation != value.device.generation:
            raise NotKept("it was lost with its context")
        return ["resident", device, value.type]

    def _struct(self, value: Any) -> Node:
        """Encode a record of handles, as a library answers with."""
        kind = type(value)
        module, qualname = kind.__module__, kind.__qualname__
        if not module.startswith(OWN) or not _is_there(module, qualname, kind):
            return None
        fields = fields_of(kind)
        if fields is None:
            return None
        values = [self._node(one, getattr(value, one)) for one in fields]
        return ["struct", module, qualname, *values]

    def _named(self, name: str, value: Any) -> Node:
        """Encode what is found by its name: modules, and functions and classes in them."""
        if isinstance(value, ModuleType):
            if sys.modules.get(value.__name__) is value and value.__name__ != "__main__":
                return ["module", value.__name__]
            raise NotKept("it is a module that cannot be imported by its name")
        if isinstance(value, FunctionType | BuiltinFunctionType | type | np.ufunc):
            module = getattr(value, "__module__", None) or ""
            qualname = getattr(value, "__qualname__", value.__name__)
            if module != "__main__" and _is_there(module, qualname, value):
                return ["from", module, qualname]
            if isinstance(value, np.ufunc) and _is_there("numpy", value.__name__, value):
                return ["from", "numpy", value.__name__]
            if self._kept.definition(name, value):
                return ["defined", name]
            raise NotKept("no cell has defined it by itself, as `def` and `class` do")
        return None


def fields_of(kind: type) -> tuple[str, ...] | None:
    """Return the fields of a NamedTuple or a frozen dataclass; None of another class."""
    if issubclass(kind, tuple):
        return getattr(kind, "_fields", None)
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is not None and parameters.frozen:
        fields: dict[str, Any] = kind.__dataclass_fields__  # type: ignore[attr-defined]
        return tuple(fields)
    return None


def _is_there(module: str, qualname: str, value: Any) -> bool:
    """Whether a module has this under this name."""
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found is not None and found is value


def _dtype_text(dtype: np.dtype[Any]) -> str:
    """Return a dtype as text: our name of what NumPy has none for."""
    name = str(dtype)
    if name in NAMES and numpy_dtype(name) == dtype:
        return name
    if dtype.names is not None or dtype.subdtype is not None or np.dtype(dtype.str) != dtype:
        raise NotKept(f"its dtype {dtype} has no short name")
    return dtype.str
