"""A device, or a user's actor, as the tree shows it."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from accel_lab.actor.actor import ActorRef
from accel_lab.compute.events.tree import Node, State
from accel_lab.compute.process.bound_process import BoundProcess
from accel_lab.compute.supervision.context_supervisor import ContextSupervisor
from accel_lab.compute.wire.side_channel import SPILLED


def node_of(supervisor: ContextSupervisor, root: str) -> Node:
    """Return a device, its context and its library actors as they are now; any thread."""
    requests, process, health = supervisor.requests, supervisor.process, supervisor.health
    state = requests.state
    path = f"{root}/{supervisor.name}"
    load = requests.load()
    # What was cancelled while it runs occupies the device until it is answered.
    in_flight = sum(load.running.values()) + requests.withdrawn
    mailbox = sum(load.waiting.values())
    libraries = tuple(
        Node(
            name=library,
            path=f"{path}/context/{library}",
            kind="library",
            state=state,
            mailbox=load.waiting.get(library, 0),
            in_flight=load.running.get(library, 0),
            restarts=health.library_restarts.get(library, 0),
            detail=_library(library, health.streams, health.statistics.get(library)),
            stream=health.streams.get(library, ("",))[0],
        )
        for library in health.libraries
    )
    context = Node(
        name="context",
        path=f"{path}/context",
        kind="context",
        state=state,
        generation=requests.generation,
        mailbox=mailbox,
        in_flight=in_flight,
        used_bytes=health.used_bytes,
        total_bytes=health.total_bytes,
        restarts=supervisor.restarts,
        detail=_process(process) if process is not None else _without(supervisor),
        pid=None if process is None else process.pid or None,
        children=libraries,
    )
    model = (
        health.model
        if supervisor.cause is None
        else f"{health.model}; last loss: {supervisor.cause}"
    )
    return Node(
        name=supervisor.name,
        path=path,
        kind="device",
        state=state,
        generation=requests.generation,
        mailbox=mailbox,
        in_flight=in_flight,
        used_bytes=health.used_bytes,
        total_bytes=health.total_bytes,
        restarts=supervisor.restarts,
        detail=model,
        kept=tuple(_kept(supervisor)),
        children=(context,),
    )


def _kept(supervisor: ContextSupervisor) -> Iterator[tuple[str, int]]:
    """Yield what the host has of a device's buffers: those that gave way, and of a suspension."""
    moved = supervisor.health.statistics.get("upload", {}).get(SPILLED, 0)
    if moved:
        yield "moved from the device for want of room", moved
    if supervisor.requests.state == "suspended" and supervisor.requests.connection.kept_bytes:
        yield "kept while the device is suspended", supervisor.requests.connection.kept_bytes


def _process(process: BoundProcess) -> str:
    where = f" on {process.place}" if process.place else ""
    return f"process {process.pid}{where}"


def _library(
    library: str, streams: Mapping[str, tuple[str, int, int]], counted: Mapping[str, int] | None
) -> str:
    """Write a library's stream, if that is no plain one of its own, and its counters in a line."""
    stream, asked, priority = streams.get(library, (library, 0, 0))
    told = [f"on {stream}"] if stream != library else []
    if asked:
        told.append(f"priority {priority}{f' of {asked} asked for' if asked != priority else ''}")
    return ", ".join(filter(None, [*told, _statistics(counted)]))


def _statistics(counted: Mapping[str, int] | None) -> str:
    """Write a library's counters in a line; most have none."""
    return ", ".join([f"{what} {count}" for what, count in counted.items()]) if counted else ""


def _without(supervisor: ContextSupervisor) -> str:
    """Say why a device has no context."""
    waits = supervisor.suspension.told
    return str(supervisor.cause or "") if waits is None else waits.text


def node_of_actor(ref: ActorRef[Any], root: str) -> Node:
    """Return an actor and its children as they are now; any thread.

    What waits for them waits for it, too: a parent is never below its children.
    """
    children = tuple(node_of_actor(child, root) for child in ref.children)
    sight = ref.sight
    told = [ref.kind, sight.detail, f"last failure: {ref.cause}" if ref.cause else ""]
    return Node(
        name=ref.name,
        path=f"{root}{ref.path}",
        kind="actor",
        state=cast("State", ref.state),
        mailbox=ref.depth + sight.waiting + sum(child.mailbox for child in children),
        in_flight=sight.in_flight,
        restarts=ref.restarts,
        detail="; ".join(filter(None, told)),
        children=children,
    )
