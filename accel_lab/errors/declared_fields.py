"""The fields that an error's class declares: attributes that travel with it wherever it goes.

A class names them, and says which types they have:

    class SingularMatrix(AccelError, fields=("pivot", "matrix")):
        pivot: int
        matrix: int = 0

Its constructor takes the text and, by keyword, the fields; one with a value in the class may be
left out. Copies, pickles, the wire and the journal read `fields`, so nothing else has to know the
class. An attribute that is not among them would stay behind, so a class that shows one is refused.
"""

import dis
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any, ClassVar, dataclass_transform, get_origin

KEPT_HERE = frozenset(("taken", "root", "first"))
"""What a process notes of an error for itself."""
_OWN = frozenset(("args",))
"""What a constructor may store, for it is there in every exception."""
_SHARED = (list, dict, set, bytearray)
_NONE = object()


def positional(*, default: Any, kw_only: bool) -> Any:  # noqa: ARG001 - a type checker reads it
    """Return the default of what a constructor takes by position."""
    return default


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(positional,))
class Declared(Exception):
    """The base of errors that declare fields.

    Attributes:
        fields: the names of those of this class and of its bases.
    """

    fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, fields: Iterable[str] = (), **options: Any) -> None:
        """Declare the fields of a subclass.

        Raises:
            TypeError: the class has an attribute that would not travel, or a field cannot be one.
        """
        super().__init_subclass__(**options)
        if isinstance(fields, str):
            raise TypeError(f"{cls.__name__}: fields is {fields!r}; write fields=({fields!r},)")
        own = tuple(fields)
        inherited = [name for base in cls.__mro__[:0:-1] for name in vars(base).get("fields", ())]
        cls.fields = tuple(dict.fromkeys((*inherited, *own)))
        for name in own:
            if name not in inherited:
                _require_free(cls, name)
        for name in cls.fields:
            _require_plain(cls, name)
        for name in _attributes(cls):
            if name not in {*cls.fields, *KEPT_HERE, *_OWN}:
                known = ", ".join(map(repr, (*own, name)))
                raise TypeError(
                    f"{cls.__name__}.{name} would not travel with the error: declare it with "
                    f"fields=({known}{',' * (not own)}), or annotate it as a ClassVar"
                )

    def __init__(self, *text: object, **fields: Any) -> None:
        """Take the text, and the fields by keyword.

        Raises:
            TypeError: a field is not declared, or one without a default is missing.
        """
        super().__init__(*text)
        kind = type(self)
        for name in fields:
            if name not in kind.fields:
                has = ", ".join(kind.fields)
                raise TypeError(f"{kind.__name__} has no field {name!r}; it has {has}")
        if kind.__init__ is Declared.__init__:  # another one may set the rest itself
            for name in kind.fields:
                if name not in fields and not hasattr(kind, name):
                    raise TypeError(f"{kind.__name__} needs {name}=…: it has no default")
        vars(self).update(fields)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the constructor, which may need more than `args`."""
        return rebuilt, (type(self), self.args), vars(self) or None


def rebuilt(kind: type[Exception], args: tuple[Any, ...]) -> Any:
    """Return an error with these `args` as it is before its constructor runs."""
    # The `__new__` must be that of the layout, for Python refuses MemoryError's for a class that
    # is laid out as an Exception.
    base: Any = kind
    while base.__module__ != "builtins":
        base = base.__base__
    error = base.__new__(kind, *args)
    error.args = args
    return error


def fields_of(error: Declared) -> dict[str, Any]:
    """Return the fields that an error has itself, and not as its class's values."""
    own = vars(error)
    return {name: own[name] for name in type(error).fields if name in own}


def undeclared(error: Declared) -> list[str]:
    """Return the attributes of an error that do not travel, less those of its process."""
    known = {*type(error).fields, *KEPT_HERE}
    return [name for name in vars(error) if name not in known and name[:1] != "_"]


def _require_free(cls: type[Declared], name: str) -> None:
    """Refuse a name that is no attribute's, or that a base has for something else."""
    if not name.isidentifier() or name.startswith("_"):
        raise TypeError(f"{cls.__name__}: {name!r} cannot be a field; a public name can")
    for base in cls.__mro__[1:]:
        if name in vars(base):
            raise TypeError(
                f"{cls.__name__}: {name!r} cannot be a field: {base.__name__} has it for something "
                "else; choose another name"
            )


def _require_plain(cls: type[Declared], name: str) -> None:
    """Refuse a field that is computed, or whose value in the class all errors would share."""
    value = vars(cls).get(name, _NONE)
    if hasattr(type(value), "__get__"):
        raise TypeError(f"{cls.__name__}.{name} is a {type(value).__name__}, which is no field")
    if isinstance(value, _SHARED):
        text = f"{cls.__name__}.{name} is a {type(value).__name__}, which all errors would share"
        raise TypeError(f"{text}: use a tuple, or leave the field without a value")


def _attributes(cls: type[Declared]) -> Iterator[str]:
    """Yield the attributes that a class shows its errors to have."""
    for name, kind in _annotations(cls).items():
        if not _is_of_class(kind):
            yield name
    slots = vars(cls).get("__slots__", ())
    yield from (slots,) if isinstance(slots, str) else slots
    init = vars(cls).get("__init__")
    if isinstance(init, FunctionType):
        yield from _stored(init)


def _annotations(cls: type[Declared]) -> dict[str, Any]:
    """Return the annotations in a class's own body; no name in them has to be known yet."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(cls, format=Format.FORWARDREF)
    found: dict[str, Any] = vars(cls).get("__annotations__", {})
    return found


def _is_of_class(annotation: Any) -> bool:
    """Whether an annotation, which may be a text, is that of a ClassVar."""
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2] == "ClassVar"
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _stored(init: FunctionType) -> Iterator[str]:
    """Yield the attributes that a constructor stores, as `self.pivot = pivot`."""
    this = init.__code__.co_varnames[:1]
    before: Any = None
    for step in dis.get_instructions(init):
        if step.opname == "STORE_ATTR":
            loaded = before if isinstance(before, tuple) else (before,)  # two at once, since 3.13
            if loaded[-1:] == this:
                yield str(step.argval)
        before = step.argval
