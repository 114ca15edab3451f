"""Check that messages, actors and a backend's table fit together, before anything is sent.

A context that does not know a message cannot answer it, so whatever is registered only by half is
refused when a system opens, with the file in which the other half belongs.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import msgspec

from accel_lab.compute.execution.launch import LibraryActor, handled_by
from accel_lab.compute.message.builtin import OF_TABLE
from accel_lab.compute.message.operation import Operation, answers_buffer, travelling
from accel_lab.compute.message.support import FIRST_LIBRARY_TAG, name_of

Kind = type[Operation[Any]]


def function_name(kind: Kind) -> str:
    """Return what the function beside a message is called, and a backend's method for it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def row(kind: Kind) -> str:
    """Return a message's row in the reference: its name, its function, its first sentence."""
    summary = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
    function = "lab.group" if kind.grouped else f"{kind.library}.{function_name(kind)}"
    return f"| `{kind.__name__}` | `{function}` | {summary} |"


def actors_in(library: ModuleType) -> list[type[LibraryActor]]:
    """Return the actors that a library's module defines."""
    return [
        one
        for one in vars(library).values()
        if isinstance(one, type)
        and issubclass(one, LibraryActor)
        and one.__module__ == library.__name__
    ]


def messages() -> list[Kind]:
    """Return every message of this project that travels, of those imported so far."""
    return [kind for kind in travelling() if kind.__module__.startswith("accel_lab.")]


def require_registered(
    kinds: Iterable[Kind],
    actors: Sequence[type[LibraryActor]],
    support: Mapping[str, frozenset[str]],
    backend: str,
) -> None:
    """Refuse a library that is there only by half.

    Parameters:
        support: the table of the backend that is called `backend`.

    Raises:
        TypeError: with what is missing, and where it belongs.
    """
    table = f"SUPPORT of accel_lab/backends/{backend}/support.py"
    named: dict[str, Kind] = {}
    tagged: dict[object, Kind] = {}
    handled = _handled(actors)
    for kind in kinds:
        tag = kind.__struct_config__.tag
        other = tagged.setdefault(tag, kind)
        if other is not kind:
            raise TypeError(
                f"{kind.__name__} and {other.__name__} both have tag={tag}; give one a free tag"
            )
        if kind not in OF_TABLE:  # the context itself does those
            _require_handled(kind, handled.get(kind))
        _require_decoded(kind)
        name = name_of(kind)
        if name and name not in support:
            raise TypeError(
                f"{name} has no dtypes: give it `dtypes: ClassVar = frozenset({...})`, of which "
                f"there may be none, or a row in {table}"
            )
        named[name] = kind
    for name in support:
        if name not in named:
            raise TypeError(
                f"{table} has a row {name}, and no message with a tag is called so: mend the "
                "row, or give the message a tag"
            )


def _require_decoded(kind: Kind) -> None:
    try:
        msgspec.msgpack.Decoder(kind, dec_hook=lambda _, value: value)
    except TypeError as error:
        raise TypeError(
            f"no context could read {kind.__name__}: {error}; declare the field in another way"
        ) from None


def _handled(actors: Sequence[type[LibraryActor]]) -> dict[Kind, type[LibraryActor]]:
    """Return the actor of each message type."""
    handled: dict[Kind, type[LibraryActor]] = {}
    owners: dict[str, type[LibraryActor]] = {}
    for actor in actors:
        if not hasattr(actor, "library"):
            raise TypeError(
                f"{actor.__name__} has no library: give it `library: ClassVar`, the name of the "
                "file that it is in"
            )
        owner = owners.setdefault(actor.library, actor)
        if owner is not actor:
            raise TypeError(
                f"{actor.__name__} and {owner.__name__} both own the library {actor.library!r}; "
                "give one another name"
            )
        for kind in handled_by(actor):
            handled[kind] = actor
    return handled


def _require_handled(kind: Kind, actor: type[LibraryActor] | None) -> None:
    name = kind.__name__
    if actor is None:
        raise TypeError(
            f"no actor takes {name} of {kind.__module__}: give it `library: ClassVar`, the name of "
            f"its library's file, or mark a method of an actor with @handles({name})"
        )
    if kind.library != actor.library:
        raise TypeError(
            f"{name} is of the library {kind.library!r} and {actor.__name__} of "
            f"{actor.library!r}: give both the same `library`"
        )
    if kind.__module__.startswith("accel_lab.compute."):
        return
    tag = kind.__struct_config__.tag
    if isinstance(tag, int) and tag < FIRST_LIBRARY_TAG:
        raise TypeError(
            f"{name} has tag={tag}, and tags below {FIRST_LIBRARY_TAG} are the core's; take a "
            "higher one"
        )
    if kind.infer is Operation.infer and answers_buffer(kind):
        raise TypeError(
            f"{name} answers with a buffer and does not say which: give it an `infer` that returns "
            "the Spec of its result"
        )
