"""A scene's cells and messages as spans: a cell is the root of a trace, messages are its children.

The notebook and each context are processes, so each has a resource of its own; a trace goes through
all of them. A span is begun and ended with the times of the facts, whenever they are told.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from opentelemetry.metrics import Histogram
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
)

from accel_lab.actor.events import Event
from accel_lab.compute.events.lifecycle import ContextStarted
from accel_lab.compute.events.samples import CellRun, NotebookSampled, Slice, WorkTraced
from accel_lab.telemetry import names
from accel_lab.views.scene.scene import Scene

KEPT = 4_096
"""So many cells, groups and lost messages are remembered, the newest."""

EVERY = 10_000

Providers = Callable[[dict[str, Any]], TracerProvider]
"""Makes what gives spans of a context's process, by the attributes of its resource."""


class Spans:
    """Makes spans of what a scene gets; one thread at a time.

    Parameters:
        scene: it has each fact before `take` gets it.
        notebook: makes the spans of the notebook's process.
        providers: makes a provider for each context.
        durations: gets how long each message took.
        code: whether a cell's span has the first line of its text.
    """

    def __init__(
        self,
        scene: Scene,
        name: str,
        notebook: Tracer,
        providers: Providers,
        durations: Histogram,
        *,
        code: bool,
    ) -> None:
        self._scene = scene
        self._name = name
        self._providers = providers
        self._durations = durations
        self._code = code
        self._seen = scene.traced
        self._made = 0
        self._tracers: dict[tuple[str, int], Tracer] = {}
        self._generations: dict[str, int] = {}
        self._cells: OrderedDict[float, Span] = OrderedDict()
        self._groups: OrderedDict[int, list[SpanContext]] = OrderedDict()
        self._lost: OrderedDict[tuple[str, int], SpanContext] = OrderedDict()
        self._waiting: list[tuple[str, int, Slice]] = []
        self._notebook = notebook
        self._session: Span | None = None

    def take(self, fact: Event) -> None:
        """Take one fact."""
        if isinstance(fact, WorkTraced):
            self._waiting += self._new(fact)
        elif isinstance(fact, NotebookSampled):
            for cell in fact.cells:
                self._told(cell)

    def flush(self, full: Callable[[], object] = lambda: None) -> None:
        """Make the spans of the messages so far, whose cells have been told by now.

        Parameters:
            full: called after each EVERY spans, for who would rather wait than lose some.
        """
        waiting, self._waiting = self._waiting, []
        for device, generation, one in waiting:
            self._message(device, generation, one)
            self._made += 1
            if self._made % EVERY == 0:
                full()

    def end(self) -> None:
        """End what is open: nothing more comes."""
        self.flush()
        at = _ns(self._scene.at)
        for span in self._cells.values():
            if span.is_recording():
                span.end(at)
        if self._session is not None:
            self._session.end(at)

    def cell_at(self, moment: float) -> SpanContext | None:
        """Return the span of the cell that ran at a moment; None where none did."""
        for start, cell in reversed(self._scene.cells.items()):
            if start <= moment and (cell.end is None or moment <= cell.end):
                return self._cell(cell).get_span_context()
        return None

    def _new(self, fact: WorkTraced) -> Iterator[tuple[str, int, Slice]]:
        """Yield the slices that this fact has added to the scene, with their generation."""
        scene, device = self._scene, fact.device
        before = self._generations.get(device, fact.generation)
        self._generations[device] = fact.generation
        fresh = min(scene.traced - self._seen, len(scene.slices))
        self._seen = scene.traced
        for _, _, one in islice(scene.slices, len(scene.slices) - fresh, None):
            yield device, before if one.lost else fact.generation, one

    def _message(self, device: str, generation: int, one: Slice) -> None:
        if one.end is None:
            return
        senders = self._scene.senders.get(device)
        number = None if senders is None else senders.cell_of(one.seq)
        attributes: dict[str, Any] = {
            names.DEVICE: device,
            names.GENERATION: generation,
            names.STREAM: one.stream,
            names.KIND: one.kind,
        }
        links: list[Link] = []
        if one.kind == "untraced":
            attributes[names.COUNT] = one.seq
        else:
            attributes[names.SEQ] = one.seq
            self._durations.record(
                max(0.0, one.end - one.start),
                {names.DEVICE: device, names.STREAM: one.stream, "accel_lab.message": one.name},
            )
        if number is not None and one.kind != "untraced":
            attributes[names.CELL] = number
        if one.queued is not None:
            attributes[names.QUEUED_S] = max(0.0, one.start - one.queued)
        if one.place is not None:
            group, rank, size = one.place
            attributes |= {names.GROUP: group, names.RANK: rank, names.SIZE: size}
            links += [Link(to, {names.LINK: "group"}) for to in self._groups.get(group, ())]
        earlier = self._lost.pop((device, one.seq), None) if one.kind != "untraced" else None
        if earlier is not None:
            links.append(Link(earlier, {names.LINK: "rerun"}))
        span = self._tracer(device, generation).start_span(
            one.name or one.kind,
            context=set_span_in_context(self._parent(number, one.start)),
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=links,
            start_time=_ns(one.start),
        )
        if one.place is not None:
            _keep(self._groups, one.place[0], []).append(span.get_span_context())
        if one.lost:
            span.set_attribute(names.LOST, value=True)
            span.set_status(Status(StatusCode.ERROR, "its context was lost"))
            _keep(self._lost, (device, one.seq), span.get_span_context())
        span.end(_ns(max(one.start, one.end)))

    def _parent(self, number: int | None, at: float) -> Span:
        """Return the span of a cell; that of the session for a program, or a cell unknown."""
        if number is not None:
            for cell in reversed(self._scene.cells.values()):
                if cell.number == number:
                    return self._cell(cell)
        if self._session is None:
            self._session = self._notebook.start_span(
                f"session {self._name}", start_time=_ns(at), attributes={names.SYSTEM: self._name}
            )
        return self._session

    def _cell(self, cell: CellRun) -> Span:
        """Return the span of a cell, which is begun when it is first asked for."""
        span = self._cells.get(cell.start)
        if span is None:
            attributes: dict[str, Any] = {names.CELL: cell.number, names.SYSTEM: self._name}
            if self._code:
                attributes[names.LINE] = cell.line
            span = self._notebook.start_span(
                f"cell {cell.number}", start_time=_ns(cell.start), attributes=attributes
            )
            _keep(self._cells, cell.start, span)
            self._ended(span, cell)
        return span

    def _told(self, cell: CellRun) -> None:
        """Take it that a cell has begun, or ended."""
        known = cell.start in self._cells
        span = self._cell(cell)
        if known:
            self._ended(span, cell)

    def _ended(self, span: Span, cell: CellRun) -> None:
        if cell.end is None or not span.is_recording():
            return
        span.set_attribute(names.ENDED, cell.ended)
        if cell.ended == "failed":
            span.set_status(Status(StatusCode.ERROR))
        span.end(_ns(cell.end))

    def _tracer(self, device: str, generation: int) -> Tracer:
        """Return what makes spans of a context's process."""
        key = device, generation
        if key not in self._tracers:
            resource: dict[str, Any] = {names.DEVICE: device, names.GENERATION: generation}
            for _, fact in reversed(self._scene.facts):
                if isinstance(fact, ContextStarted) and (fact.device, fact.generation) == key:
                    resource[names.PID] = fact.pid
                    break
            self._tracers[key] = self._providers(resource).get_tracer("accel_lab")
        return self._tracers[key]


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any) -> Any:
    """Keep a value, unless one is kept under the key; return the one that is."""
    found = kept.setdefault(key, value)
    while len(kept) > KEPT:
        kept.popitem(last=False)
    return found


def _ns(at: float) -> int:
    return int(at * 1e9)
