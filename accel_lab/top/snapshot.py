"""All systems at one moment: for a program as JSON, for people as tables, and as an exit status."""

import time
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from accel_lab.compute.events.tree import Node
from accel_lab.display.clock import time_of_day
from accel_lab.display.counts import counted
from accel_lab.display.printed import Printed
from accel_lab.display.sizes import memory
from accel_lab.views.feed.client import FeedSource
from accel_lab.views.scene.incidents import incidents
from accel_lab.views.scene.scene import Scene
from accel_lab.views.tallies.kernel_tally import Kernel, kernel_tally
from accel_lab.views.timeline import duration

LISTED = 20
"""So many kernels, those that took the most time, and so many faults, the newest."""
WELL, FAILED, NOBODY = 0, 1, 2

ACTOR_COLUMNS = ("Actor", "State", "Gen", "Mailbox", "In flight", "Memory", "Restarts", "PID")
KERNEL_COLUMNS = ("Kernel", "On", "Calls", "Total", "Longest", "Runs for")
FAULT_COLUMNS = ("At", "Where", "Fault", "Outcome", "Cause")
State = Literal["running", "silent", "closed", "killed"]


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the tree; the fields are those of `lab.tree()`."""

    path: str
    kind: str
    state: str
    generation: int | None
    mailbox: int
    in_flight: int
    used_bytes: int | None
    total_bytes: int | None
    restarts: int
    pid: int | None
    detail: str


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel, message, copy or function on a stream.

    Attributes:
        calls, total_s, longest_s: of those that came to their end while somebody looked.
        running_s: for how long one runs now; None where none does.
    """

    name: str
    device: str
    stream: str
    calls: int
    total_s: float
    longest_s: float
    running_s: float | None = None


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Something that failed, and what became of it."""

    at: float
    path: str
    what: str
    cause: str
    outcome: str


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One system.

    Attributes:
        state: `silent` when its process says nothing, as one that is stopped.
        wrong: what is not well with it, each as a few words; empty when it is well.
    """

    key: str
    name: str
    program: str
    folder: str
    pid: int
    up_s: float
    state: State
    wrong: tuple[str, ...]
    actors: tuple[Actor, ...]
    kernels: tuple[Work, ...]
    faults: tuple[Fault, ...]


class Snapshot(Printed, msgspec.Struct, frozen=True, kw_only=True):
    """All systems of this user on this machine.

    Attributes:
        schema: the version of this layout; it grows when a field changes its meaning or goes.
        at: when, wall seconds.
        status: the exit status: 0 all is well, 1 something failed, 2 no system was found.
        systems: those that run first, the newest first.
        mute: processes that offer a system and say nothing at all.
    """

    schema: int = 1
    at: float
    status: int
    systems: tuple[Seen, ...]
    mute: tuple[int, ...] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw three tables a system."""
        del console, options
        yield Text(headline(self), "bold")
        for one in self.systems:
            yield Text(f"\n{title(one)}", "bold")
            for columns, rows in (
                (ACTOR_COLUMNS, actor_rows(one)),
                (KERNEL_COLUMNS, kernel_rows(one)),
                (FAULT_COLUMNS, fault_rows(one)),
            ):
                table = Table(*columns, box=None, pad_edge=False)
                for row in rows:
                    table.add_row(*map(Text, row))
                if table.row_count:
                    yield table


def snapshot(sources: Iterable[FeedSource], mute: Iterable[int], since_s: float) -> Snapshot:
    """Return what is known now; any thread, does not wait for a device.

    Parameters:
        mute: processes that say nothing.
        since_s: for how long a fault counts that is over.
    """
    systems, mute = tuple(_seen(one, since_s) for one in sources), tuple(sorted(mute))
    if mute or any(one.wrong for one in systems):
        status = FAILED
    else:
        status = WELL if any(one.state == "running" for one in systems) else NOBODY
    return Snapshot(at=time.time(), status=status, systems=systems, mute=mute)


def _seen(source: FeedSource, since_s: float) -> Seen:
    with source.lock:
        scene = source.look()
        actors = () if scene.tree is None else tuple(map(_actor, scene.tree.walk()))
        kernels = tuple(_work(scene))
        faults = tuple(_faults(scene))
    if source.ended:
        state: State = "killed" if source.killed else "closed"
    else:
        state = "silent" if source.is_stale else "running"
    speaker = source.speaker
    return Seen(
        key=source.key,
        name=source.name,
        program=speaker.program,
        folder=speaker.folder,
        pid=speaker.pid,
        up_s=source.up_s,
        state=state,
        wrong=tuple(_wrong(state, source.silent_s, actors, faults, since_s)),
        actors=actors,
        kernels=kernels,
        faults=faults[-LISTED:],
    )


def _actor(node: Node) -> Actor:
    fields = {name: getattr(node, name) for name in Actor.__struct_fields__}
    return Actor(**fields)


def _work(scene: Scene) -> Iterator[Work]:
    """Yield what runs, the longest first, and then what took the most time."""
    tally, now = kernel_tally(scene), time.time()
    since: dict[Kernel, float] = {}
    for device, ones in scene.running.items():
        for one in ones:
            if one.kind != "untraced":
                kernel = tally.find(device, one)
                since[kernel] = min(one.start, since.get(kernel, one.start))
    listed, _ = tally.listed(LISTED)
    running = sorted(since, key=since.__getitem__)
    for kernel in dict.fromkeys((*running, *listed)):
        yield Work(
            name=kernel.name,
            device=kernel.device,
            stream=kernel.stream,
            calls=kernel.calls,
            total_s=kernel.total,
            longest_s=kernel.longest,
            running_s=max(0.0, now - since[kernel]) if kernel in since else None,
        )


def _faults(scene: Scene) -> Iterator[Fault]:
    nodes = () if scene.tree is None else scene.tree.children
    for one in incidents(scene.facts, [node.name for node in nodes if node.kind == "device"]):
        if one.level == "fault":
            yield Fault(
                at=one.at, path=one.path, what=one.what, cause=one.cause, outcome=one.outcome
            )


def _wrong(
    state: State, silent_s: float, actors: Iterable[Actor], faults: Iterable[Fault], since_s: float
) -> Iterator[str]:
    if state == "silent":
        yield f"its process has said nothing for {silent_s:.0f} s"
    if state == "killed":
        yield "its process is gone"
    for one in actors:
        if one.state in ("circuit open", "half-open") and state != "closed":
            yield f"{one.path}: {one.state}"
    now = time.time()
    for fault in faults:
        if state != "closed" and now - fault.at <= since_s:
            yield f"{fault.path}: {fault.what} at {time_of_day(fault.at)}"


def headline(of: Snapshot) -> str:
    """Return what it comes to, in one line."""
    running = sum(one.state == "running" for one in of.systems)
    told = [f"{running} of {len(of.systems)} systems run" if of.systems else "no system"]
    told += [f"{one.name}: {wrong}" for one in of.systems for wrong in one.wrong[-1:]]
    told += [f"process {pid} says nothing" for pid in of.mute]
    return "; ".join(told)


def title(one: Seen) -> str:
    """Return which system it is, in one line."""
    state = "" if one.state == "running" else f", {one.state}"
    return f"{one.name} of {one.program}, process {one.pid}, {duration(one.up_s)}{state}"


def shown_actors(one: Seen) -> list[Actor]:
    """Return the actors that have a row: all but the libraries that do nothing."""
    return [
        actor
        for actor in one.actors
        if actor.kind != "library"
        or actor.state != "running"
        or actor.mailbox
        or actor.in_flight
        or actor.restarts
    ]


def actor_rows(one: Seen) -> Iterator[tuple[str, ...]]:
    """Yield a row for each of these, those below another indented; then how many are at rest."""
    shown = shown_actors(one)
    for actor in shown:
        depth = actor.path.count("/")
        yield (
            "  " * depth + actor.path.rpartition("/")[2],
            actor.state,
            "" if actor.generation is None else f"g{actor.generation}",
            str(actor.mailbox),
            str(actor.in_flight),
            memory(actor.used_bytes, actor.total_bytes),
            str(actor.restarts),
            "" if actor.pid is None else str(actor.pid),
        )
    if resting := len(one.actors) - len(shown):
        yield (f"{counted(resting, 'library actor')} at rest", *[""] * (len(ACTOR_COLUMNS) - 1))


def kernel_rows(one: Seen) -> Iterator[tuple[str, ...]]:
    """Yield a row a kernel."""
    for kernel in one.kernels:
        yield (
            kernel.name,
            f"{kernel.device}/{kernel.stream}",
            str(kernel.calls),
            duration(kernel.total_s),
            duration(kernel.longest_s),
            "" if kernel.running_s is None else duration(kernel.running_s),
        )


def fault_rows(one: Seen) -> Iterator[tuple[str, ...]]:
    """Yield a row a fault, the newest first."""
    for fault in reversed(one.faults):
        yield time_of_day(fault.at), fault.path, fault.what, fault.outcome, fault.cause
