"""The message to a device: operands, options, and what its result will look like.

Every operation works out its result's shape and dtype from its operands' alone (`infer`), in
the notebook's process before it is sent and again in the context before memory is taken.
"""

import reprlib
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import msgspec

from accel_lab.actor.message import Message
from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.handle import Handle, fits, is_ref, kind_of
from accel_lab.compute.message.results import is_tuple_of_refs, is_union, results_of
from accel_lab.display.summary import as_html
from accel_lab.errors import AccelError, GroupAborted, InvalidArgument

R = TypeVar("R")
Names: TypeAlias = tuple[str, ...]
DEFAULT_TIMEOUT_S = 600.0
OWN_TIMEOUT = -1.0
"""Stands for a message's own `timeout_s`, or for its device's where the message has the default."""


class Spec(NamedTuple):
    """The shape and dtype of a result."""

    shape: tuple[int, ...]
    dtype: str


class PartialSpec(NamedTuple):
    """Of a result what can be told without its device, as how many elements are unique.

    An extent is None where only the device can tell it.
    """

    shape: tuple[int | None, ...]
    dtype: str


Specs: TypeAlias = tuple[Spec | PartialSpec | None, ...]
"""The shapes and dtypes of several results; None for one that is not asked for."""


def is_whole(made: Spec | PartialSpec | Specs | None) -> bool:
    """Whether every extent is known of what a message makes."""
    if type(made) is tuple:
        return not any(type(spec) is PartialSpec for spec in made)
    return type(made) is not PartialSpec


NO_RESULT = Spec((), "")
"""Stands on the wire for the result of a message that was checked and makes no buffer."""
HANDLE = Spec((), "handle")
"""Stands for a handle among what `infer` returns of several results; of what is known anyway."""


class Operation(Message[R], frozen=True, array_like=True, eq=False):
    """A command to one device; a subclass with a `tag` can travel to a context.

    A field called `out` names a buffer that the operation overwrites and answers with.

    Attributes:
        library: who executes it.
        dtypes: those for which every backend has it, but for what its own table says.
        lacking: what to do where a backend has it for no dtype at all.
        timeout_s: how long it may execute when nobody says otherwise.
        written: the field of the buffers that it changes, if there is such a field.
        spoils: whether what it writes is not as it should be when it fails.
        aliased: the field of the buffer whose memory the result shares.
        viewing: where the result may also be a copy, the field by which that is refused.
        asked_by: of several results those that are not always made, with the field that asks for
            each: `{"vt": "vectors"}`.
        opaque: why it cannot be run again, if it cannot.
        uncaptured: why a graph cannot have it, if that is not seen by what it answers with.
        judged_with: the operand without which the host has nothing to judge; empty for one that it
            judges in any case, or never.
        grouped: what its parts fail with together, if it has a part on each of several devices.
        fence: whether all that was sent before is enqueued before it, and all else behind it.
        runs_user_code: whether it runs code of the user's, which may break the context.
        subject: the field of the thing after which people call it, as the kernel of a launch, or of
            its name.
    """

    library: ClassVar[str] = ""
    dtypes: ClassVar[frozenset[str] | None] = None
    lacking: ClassVar[str] = ""
    timeout_s: ClassVar[float | None] = DEFAULT_TIMEOUT_S
    written: ClassVar[str] = "out"
    spoils: ClassVar[bool] = True
    aliased: ClassVar[str] = ""
    viewing: ClassVar[str] = ""
    asked_by: ClassVar[Mapping[str, str]] = {}
    opaque: ClassVar[str] = ""
    uncaptured: ClassVar[str] = ""
    judged_with: ClassVar[str] = ""
    grouped: ClassVar[type[GroupAborted] | None] = None
    fence: ClassVar[bool] = False
    runs_user_code: ClassVar[bool] = False
    subject: ClassVar[str] = ""

    def infer(self) -> Spec | PartialSpec | Specs | None:
        """Return the result's shape and dtype, or None when the answer is no buffer.

        For several results it is a tuple, with None for each that is not asked for, and `HANDLE`
        for each that is no buffer.

        Raises:
            InvalidArgument: the operands or options do not fit.
        """
        return None

    def operands(self) -> tuple[AccelRef, ...]:
        """Return every buffer and handle this message names, `out` included, in field order."""
        return operands_of(type(self))(self)

    def changes(self) -> tuple[AccelRef, ...]:
        """Return the buffers that are not as they should be if this fails."""
        return self._written() if self.spoils else ()

    def overwrites(self) -> tuple[AccelRef, ...]:
        """Return the operands that this writes: what reads them has to come before or after it."""
        return self.changes() if self.spoils else self._written()

    def _written(self) -> tuple[AccelRef, ...]:
        value = getattr(self, self.written, None)
        if value is None:
            return ()
        return tuple(filter(_is_given, value)) if isinstance(value, tuple) else (value,)

    def only_reads(self) -> tuple[AccelRef, ...]:
        """Return the buffers for which a copy would do as well: those that this never writes."""
        written = (*self.changes(), *self.overwrites())
        arrays = arrays_of(type(self))(self)
        return tuple([ref for ref in arrays if not any(ref is one for one in written)])

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value}" for name, value in self._told())
        return f"{type(self).__name__}({fields})"

    def _repr_html_(self) -> str:
        operands = self.operands()
        lines = [*self._told(), ("library", self.library)] if self.library else [*self._told()]
        if made := self._made(operands):
            lines.append(("makes", made))
        if operands:
            lines.append(("send it", f"{operands[0].device.name}.ask(message)"))
        return as_html(f"{type(self).__name__}: a message, not sent by itself", lines)

    def _told(self) -> Iterator[tuple[str, str]]:
        """Give each field that was given, buffers by their number."""
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if value is not field.default:
                yield field.name, _brief(value)

    def _made(self, operands: tuple[Any, ...]) -> str:
        """Say what the result will be; empty where only the device can tell. Never blocks."""
        if not all(isinstance(ref, Ref) and (ref.known or type(ref) is Handle) for ref in operands):
            return ""
        try:
            spec = inferred(self)
        except InvalidArgument as error:
            return f"nothing: {error}"
        if spec is None:
            return ""
        specs: Specs = (spec,) if isinstance(spec, Spec | PartialSpec) else spec
        return ", ".join(spec_text(one) for one in specs if one is not None)

    @property
    def title(self) -> str:
        """What people call it: its type, or, in a context, the name of its subject."""
        name = name_of(type(self))
        if name is not None:
            with suppress(AttributeError):  # the notebook has the handle of a kernel only
                return name(self) or type(self).__name__
        return type(self).__name__

    @property
    def dtype_key(self) -> str:
        """The dtype by which a backend decides whether it has this operation."""
        arrays = arrays_of(type(self))(self)
        return arrays[0].dtype if arrays else getattr(self, "dtype", "")


def _is_given(ref: object) -> bool:
    return ref is not None


def spec_text(spec: Spec | PartialSpec) -> str:
    """Return what is made in words: `float32[8, 8]`, or `RnnState`."""
    return f"{spec.dtype}{_extents(spec.shape)}" if spec.dtype in NAMES else spec.dtype


def _extents(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join('?' if extent is None else str(extent) for extent in shape)}]"


@cache
def name_of(kind: type[Operation[Any]]) -> Callable[[Any], str] | None:
    """Return what tells the name of a message's subject in a context; None if it has none."""
    if kind.subject in operand_fields(kind)[0]:
        return attrgetter(f"{kind.subject}.array.name")
    return attrgetter(kind.subject) if kind.subject else None


def _brief(value: object) -> str:
    if isinstance(value, Ref):
        return value.label
    if isinstance(value, tuple) and any(isinstance(one, Ref) for one in value):
        return f"({', '.join(map(_brief, value))})"
    return reprlib.repr(value)


def inferred(message: Operation[Any]) -> Spec | PartialSpec | Specs | None:
    """Return what a message infers: for several results a tuple that fits what is asked for.

    Raises:
        InvalidArgument: its own, or a field is of another type than it declares, on which `infer`
            has stumbled.
    """
    try:
        spec = message.infer()
    except AccelError:
        raise
    except Exception:
        _require_types(message)
        raise
    if type(spec) is tuple:  # a Spec is none
        require_fit(message, spec)  # type: ignore[arg-type]
        return _with_handles(message, spec)  # type: ignore[arg-type]
    return handle_spec(type(message)) if spec is None else spec


@cache
def handle_spec(kind: type[Operation[Any]]) -> Spec | None:
    """Return what messages of this type make if that is a handle; else None."""
    of = answered_handle(kind)
    return None if of is None else Spec((), of.__name__)


def _with_handles(message: Operation[Any], specs: Specs) -> Specs:
    """Return what is made, each handle by the name of what it is of."""
    results = results_of(type(message))
    if results is None or not any(results.of):
        return specs
    pairs = zip(specs, results.of, strict=True)
    return tuple([spec if not of or spec is None else Spec((), of.__name__) for spec, of in pairs])


def require_fit(message: Operation[Any], specs: Specs) -> None:
    """Refuse what a library infers of several results and does not have as it declares.

    Raises:
        TypeError: it is not one for each result that the message asks for.
    """
    results = results_of(type(message))
    assert results is not None, f"{type(message).__name__} infers several results and declares one"
    made = [at for at, spec in enumerate(specs) if spec is not None]
    if len(specs) != len(results.asked_by) or made != [*results.made(message)]:
        text = f"{message!r} infers {specs}, and its results {results.kind._fields} are asked for"
        raise TypeError(f"{text} by {results.asked_by}")


def _require_types(message: Operation[Any]) -> None:
    kind = type(message)
    hints, operands = typing.get_type_hints(kind), sum(operand_fields(kind), ())
    for name in kind.__struct_fields__:
        value, hint = getattr(message, name), hints[name]
        if name in operands:
            continue
        try:
            msgspec.convert(value, hint, dec_hook=lambda _, given: given)
        except Exception:  # noqa: BLE001 - msgspec asks an array for its keys
            arms = typing.get_args(hint) if is_union(hint) else (hint,)
            wanted = " | ".join(map(_type_name, arms))
            text = f"{kind.__name__}: {name} is of type {wanted}, and {value!r} is not"
            raise InvalidArgument(text) from None


def _type_name(hint: Any) -> str:
    if hint is type(None):
        return "None"
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def travelling(root: type[Operation[Any]] = Operation) -> Iterator[type[Operation[Any]]]:
    """Yield every operation imported so far that has a tag, so that it can reach a context."""
    for kind in root.__subclasses__():
        if isinstance(kind.__struct_config__.tag, int):
            yield kind
        yield from travelling(kind)


_buffers: dict[type, bool] = {}


def answers_buffer(kind: type[Operation[Any]]) -> bool:
    """Whether messages of this type answer with a buffer: `Operation[AccelRef]`."""
    known = _buffers.get(kind)
    if known is None:
        bases = kind.__orig_bases__  # type: ignore[attr-defined]
        known = _buffers[kind] = any(AccelRef in typing.get_args(base) for base in bases)
    return known


@cache
def answered_handle(kind: type[Operation[Any]]) -> type[Any] | None:
    """Return `RnnState` where messages of this type answer with a `Handle[RnnState]`; else None."""
    bases = kind.__orig_bases__  # type: ignore[attr-defined]
    found = (kind_of(arg) for base in bases for arg in typing.get_args(base))
    return next(filter(None, found), None)


_extractors: dict[type, Callable[[Any], tuple[AccelRef, ...]]] = {}


def operands_of(kind: type[Operation[Any]]) -> Callable[[Any], tuple[AccelRef, ...]]:
    """Return the function that lists the operands of a message of this type.

    It does not look at what they are: `no_operand` says what is wrong with one that is none.
    """
    extract = _extractors.get(kind)
    if extract is None:
        extract = _build(*operand_fields(kind), gaps=bool(tuples_of(kind)))
        _extractors[kind] = extract
    return extract


@cache
def arrays_of(kind: type[Operation[Any]]) -> Callable[[Any], tuple[AccelRef, ...]]:
    """Return the function that lists those operands of a message of this type that are buffers."""
    handles = handle_fields(kind)
    if not handles:
        return operands_of(kind)
    fields = [tuple([one for one in names if one not in handles]) for names in operand_fields(kind)]
    return _build(*fields, gaps=bool(tuples_of(kind)))


def require_kinds(message: Operation[Any]) -> bool:
    """Refuse operands that are not what their fields say; return whether each shape is known.

    Raises:
        InvalidArgument: one is a handle of something else, a buffer in place of a handle, or a
            handle in place of a buffer.
    """
    for name, of in handle_fields(type(message)).items():
        value = getattr(message, name)
        for one in value if type(value) is tuple else (value,):
            if one is not None and not fits(one, of):
                raise no_operand(message)
    is_known = True
    for ref in arrays_of(type(message))(message):
        if not isinstance(ref, AccelRef):
            raise no_operand(message)
        is_known = is_known and ref.known
    return is_known


def no_operand(message: Operation[Any]) -> InvalidArgument:
    """Say which field holds something that does not belong there."""
    handles = handle_fields(type(message))
    required, optional, many = operand_fields(type(message))
    several = tuples_of(type(message))
    for name in (*required, *optional, *many):
        value = getattr(message, name)
        if name in several and value is None:
            continue
        if name in many and not isinstance(value, several.get(name, tuple)):
            what = several[name].__name__ if name in several else "tuple"
            text = f"{type(message).__name__}.{name} must be a {what} of AccelRefs, not {value!r}"
            return InvalidArgument(text)
        may_be_none, of = name in optional or name in several, handles.get(name)
        for one in value if name in many else (value,):
            if one is None and may_be_none:
                continue
            if of is None and not isinstance(one, AccelRef):
                advice = "put() the array on the device first"
                return _wrong(message, name, "an AccelRef", one, advice)
            if of is Ref and not fits(one, of):
                return _wrong(message, name, "an AccelRef or a Handle", one, "put() an array first")
            if of is not None and not fits(one, of):
                makers = [kind.__name__ for kind in travelling() if answered_handle(kind) is of]
                advice = f"{' or '.join(makers) or 'its library'} makes one"
                return _wrong(message, name, f"a Handle[{of.__name__}]", one, advice)
    raise AssertionError(message)


def _wrong(
    message: Operation[Any], name: str, wanted: str, given: object, advice: str
) -> InvalidArgument:
    what = given.label if isinstance(given, Ref) else type(given).__name__
    where = f"{type(message).__name__}.{name}"
    return InvalidArgument(f"{where} must be {wanted}, not {what}; {advice}")


@cache
def handle_fields(kind: type[Operation[Any]]) -> dict[str, type[Any]]:
    """Return the fields that are handles, one or a tuple of them, and what these are of."""
    found: dict[str, type[Any]] = {}
    for name, hint in typing.get_type_hints(kind).items():
        arms = (hint, *typing.get_args(hint))
        of = next(filter(None, map(kind_of, arms)), None)
        if of is not None and name in sum(operand_fields(kind), ()):
            found[name] = of
    return found


@cache
def operand_fields(kind: type[Operation[Any]]) -> tuple[Names, Names, Names]:
    """Return the fields that are a buffer, that may be None instead, and that are tuples.

    A tuple of several results, as `out`, may be None, and so may each of its buffers.
    """
    required: list[str] = []
    optional: list[str] = []
    many: list[str] = []
    for name, hint in typing.get_type_hints(kind).items():
        arms = typing.get_args(hint)
        if is_ref(hint):
            required.append(name)
        elif is_union(hint) and any(map(is_ref, arms)):
            optional.append(name)
        elif name in tuples_of(kind) or (
            typing.get_origin(hint) is tuple and arms and is_ref(arms[0])
        ):
            many.append(name)
    return tuple(required), tuple(optional), tuple(many)


def require_tuples(message: Operation[Any]) -> None:
    """Refuse what is no NamedTuple of buffers where one belongs, as for `out`.

    Raises:
        InvalidArgument: it is something else.
    """
    for name, kind in tuples_of(type(message)).items():
        value = getattr(message, name)
        if value is not None and not isinstance(value, kind):
            raise no_operand(message)


def _is_tuple(hint: object) -> bool:
    return typing.get_origin(hint) is tuple


@cache
def tuples_of(kind: type[Operation[Any]]) -> dict[str, Any]:
    """Return the fields that are a NamedTuple of buffers or None, and which."""
    found: dict[str, Any] = {}
    for name, hint in typing.get_type_hints(kind).items():
        for arm in typing.get_args(hint) if is_union(hint) else ():
            if is_tuple_of_refs(arm):
                found[name] = arm
    return found


def _build(  # noqa: C901 - one case for each way to name operands
    required: Names, optional: Names, many: Names, *, gaps: bool = False
) -> Callable[[Any], tuple[AccelRef, ...]]:
    """Return the fastest function that lists these fields; most have an `out` or nothing."""
    names = [*required, *optional]
    if len(names) > 1:
        read: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
    elif names:
        one = attrgetter(*names)

        def read(message: Any) -> tuple[Any, ...]:
            return (one(message),)
    else:

        def read(message: Any) -> tuple[Any, ...]:  # noqa: ARG001 - it names no buffer
            return ()

    if not optional and not many:
        return read
    if len(optional) == 1 and not many:

        def without_none(message: Any) -> tuple[Any, ...]:
            values = read(message)
            return values if values[-1] is not None else values[:-1]

        return without_none

    if not optional and len(many) == 1 and not gaps:
        (name,) = many
        last = attrgetter(name)
        if len(names) == 1:

            def with_one(message: Any) -> tuple[Any, ...]:
                return (one(message), *last(message))

            return with_one

        def with_many(message: Any) -> tuple[Any, ...]:
            return read(message) + tuple(last(message))

        return with_many

    first = len(required)

    def extract(message: Any) -> tuple[Any, ...]:
        values = read(message)
        found = values[:first] + tuple([v for v in values[first:] if v is not None])
        for name in many:
            value = getattr(message, name)
            found += tuple(filter(_is_given, value or ())) if gaps else value
        return found

    return extract
