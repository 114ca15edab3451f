"""The handler that most messages have: read the operands, make the output, call the backend.

The backend's method has the message's name in lower case and is given the message, the array of
each operand, None where there is none, and the array to write: `solve(self, m, a, b, out)`.

A library's own actor has methods for what needs more; one without an actor has none to write.
"""

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from accel_lab.compute.execution.launch import Launch, LibraryActor, handled_by, handles
from accel_lab.compute.message.operation import Operation, operand_fields
from accel_lab.libraries.authoring.operand import output
from accel_lab.libraries.authoring.registration import Kind, actors_in, function_name, messages
from accel_lab.library_modules import class_name


class DefaultActor(LibraryActor):
    """Owns the stream of a library in one context, and what the backend keeps for it."""

    def statistics(self) -> Mapping[str, int]:
        """Return what the backend counts, if it does."""
        counted = getattr(self.lib, "statistics", None)
        return counted() if counted else super().statistics()


def actor_of(library: str, module: ModuleType) -> type[LibraryActor]:
    """Return a library's actor, with the default handler of each message that it has none for."""
    kinds = [kind for kind in messages() if kind.library == library]
    own = actors_in(module)
    if own:
        (actor,) = own
    else:
        name = class_name(library, "") + "Actor"
        actor = type(name, (DefaultActor,), {"library": library, "__module__": module.__name__})
    complete(actor, kinds)
    return actor


def complete(actor: type[LibraryActor], kinds: Iterable[Kind]) -> None:
    """Give an actor the default handler of each message for which it has none."""
    for kind in set(kinds) - handled_by(actor).keys():
        setattr(actor, function_name(kind), handles(kind)(default_handler(kind)))


def default_handler(kind: Kind) -> Callable[[Any, Operation[Any], Launch], None]:
    """Return the handler of a message of this type."""
    name = function_name(kind)
    required, optional, _ = operand_fields(kind)
    has_out = "out" in optional
    operands = tuple(
        one for one in kind.__struct_fields__ if one in {*required, *optional} - {"out"}
    )

    def handle(self: LibraryActor, m: Operation[Any], launch: Launch) -> None:
        out = output(launch, *operands) if has_out else launch.empty()
        refs = [getattr(m, one) for one in operands]
        arrays = [None if ref is None else launch.read(ref) for ref in refs]
        getattr(self.lib, name)(m, *arrays, out)

    handle.__name__ = handle.__qualname__ = name
    handle.__doc__ = f"Enqueue one {kind.__name__}."
    return handle
