"""Messages that a backend lacks, computed by the host within its context.

The operands are copied into arrays of NumPy's, the library actor of the `host` backend handles the
same message, and what it has written is copied to where it belongs. All that happens before its
handler returns: other messages wait meanwhile.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from accel_lab.compute.execution.backend import Mirrors
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.launch import Launch, LibraryActor, handlers_of
from accel_lab.compute.fallback.host_launch import HostLaunch
from accel_lab.compute.message.operation import Operation
from accel_lab.compute.message.support import name_of
from accel_lab.errors import UnsupportedDtype

ON_HOST = "on host"
"""What stands behind the name of such a message in the timeline."""


class Fallback:
    """Decides for each message who computes it; used by the dispatcher thread.

    Attributes:
        served: the table of what is computed, by whomever.

    Parameters:
        context: whose messages these are.
        native: the table of what its backend has.
        helped: the table of what the host computes in its place.
        makers: of the host's libraries.
        mirrors: the backend's, of a message's arrays.
    """

    def __init__(
        self,
        context: Context,
        native: Mapping[str, frozenset[str]],
        helped: Mapping[str, frozenset[str]],
        makers: Mapping[str, Callable[[], Any]],
        mirrors: Callable[[Sequence[Any]], Mirrors],
    ) -> None:
        self._context, self._mirrors = context, mirrors
        self._native, self._helped, self._makers = native, helped, makers
        self._actors: dict[str, LibraryActor] = {}
        self._handlers: dict[type[Operation[Any]], Callable[[Any, Launch], Any]] = {}
        self._counted: dict[str, tuple[int, int]] = {}
        rows = {row: native.get(row, frozenset()) | has for row, has in helped.items()}
        self.served: Mapping[str, frozenset[str]] = {**native, **rows}

    def around(
        self, kind: type[Operation[Any]], handler: Callable[[Any, Launch], None]
    ) -> Callable[[Any, Launch], None]:
        """Return a handler that has the host compute what the backend's lacks."""
        row = name_of(kind)
        helped, native = self._helped.get(row), self._native.get(row, frozenset())
        if not helped:
            return handler

        def handle(message: Any, launch: Launch) -> None:
            dtype = message.dtype_key
            if dtype in native:
                try:
                    handler(message, launch)
                except UnsupportedDtype:  # it depends on more than the dtype
                    if dtype not in helped:
                        raise
                    launch.begin_anew()
                else:
                    return
            self._compute(message, launch)

        return handle

    def actor(self, library: str) -> LibraryActor:
        """Return the host's actor of a library, made when it is first needed."""
        actor = self._actors.get(library)
        if actor is None:
            actor = self._context.actor_with(library, self._makers[library]())
            self._actors[library] = actor
            self._handlers.update(handlers_of(actor))
        return actor

    def statistics(self, library: str) -> Mapping[str, int]:
        """Count the messages of a library that the host has computed; any thread."""
        counted = self._counted.get(library)
        if counted is None:
            return {}
        return {"messages on host": counted[0], "bytes copied for these": counted[1]}

    def forget(self, library: str) -> None:
        """Close the host's actor of a library: it is made anew when it is needed."""
        actor = self._actors.pop(library, None)
        if actor is not None:
            actor.close()
            for kind in handlers_of(actor):
                self._handlers.pop(kind, None)

    def close(self) -> None:
        """Close the host's actors."""
        for library in list(self._actors):
            self.forget(library)

    def _compute(self, message: Operation[Any], launch: Launch) -> None:
        library = message.library
        self.actor(library)
        operands: tuple[Any, ...] = message.operands()
        mirrors = self._mirrors([one.array for one in operands])
        if launch.trace is not None:
            launch.trace.name = f"{launch.trace.name} {ON_HOST}"
        there = HostLaunch(launch, mirrors)
        try:
            self._handlers[type(message)](message, there)
            there.write_back()
        finally:
            messages, nbytes = self._counted.get(library, (0, 0))
            self._counted[library] = messages + 1, nbytes + mirrors.nbytes
