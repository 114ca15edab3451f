"""An agent that runs a graph, keeps where each run stands, and resumes it."""

import pickle
from collections import Counter
from collections.abc import Mapping, MutableMapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

from accel_lab.actor.reply import Reply
from accel_lab.blueprints.agents.errors import VisitsExceeded
from accel_lab.blueprints.agents.graph import START, AgentGraph, Node, State
from accel_lab.blueprints.patterns.base.calls import Call, Calls
from accel_lab.blueprints.patterns.base.errors import stage_failed
from accel_lab.blueprints.patterns.base.pattern import (
    Limits,
    Overflow,
    PatternActor,
    Place,
    Service,
)
from accel_lab.blueprints.patterns.base.record import Record
from accel_lab.blueprints.patterns.base.request import Entry, Infer, Stream
from accel_lab.compute.events.patterns import Part, Passage
from accel_lab.compute.message.validation import require_timeout
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.pipeline.stage import require_count

Checkpoints = MutableMapping[str, bytes]


class Checkpoint(NamedTuple):
    """Where a run stands.

    Attributes:
        state: as it was before this step.
        step: the nodes of this step; none when the run is over.
        done: what those of them changed that have run.
        visits: how often each node was begun.
        joined: for each edge from several nodes, by its position, those that have run.
    """

    state: State
    step: tuple[str, ...] = (START,)
    done: Mapping[str, State] = {}
    visits: Mapping[str, int] = {}
    joined: Mapping[int, tuple[str, ...]] = {}


class Begin(NamedTuple):
    """What is asked for: a run from its checkpoint, which is kept under a name if it has one."""

    run: str | None
    at: Checkpoint | None


class GraphAgent(Service):
    """Runs a graph for each state that is sent; the answer is the state at its end.

    `stream` yields `(node, update)` as nodes end. A node that meets a fault is run again, as its
    stage says. The first node that fails ends its run with StageFailed.

    Parameters:
        place: the system in which it lives, and in whose tree it stands.
        graph: what a run does.
        checkpoints: where runs with a name are kept after each node, pickled: a dict, a
            `shelve.open(…).dict`, or any other mapping of bytes. That is done on the thread of
            all actors, so keep what is large elsewhere. Only resume what you have written:
            reading a pickle may run code.
        max_running: how many runs are under way at a time.
        capacity, overflow, wait_s, timeout_s: see `Limits`.
        name: in the tree.

    Raises:
        InvalidArgument: an option does not fit, or the graph has an edge to nowhere.
        UnboundedCycle: a run may go round for ever.
    """

    kind: ClassVar[str] = "graph agent"

    def __init__(
        self,
        place: Place,
        graph: AgentGraph,
        *,
        checkpoints: Checkpoints | None = None,
        max_running: int = 8,
        capacity: int = 1024,
        overflow: Overflow = "reject",
        wait_s: float = 10.0,
        timeout_s: float | None = None,
        name: str = "agent",
    ) -> None:
        graph.check()
        require_count(max_running, "max_running", 1)
        self._checkpoints: Checkpoints = {} if checkpoints is None else checkpoints
        make = partial(
            GraphActor,
            limits=Limits(capacity=capacity, overflow=overflow, wait_s=wait_s, timeout_s=timeout_s),
            graph=graph,
            checkpoints=self._checkpoints,
            max_running=max_running,
            taken=Counter(),
        )
        super().__init__(place, name, make)

    def ask(
        self,
        value: Mapping[str, Any],
        *,
        run: str | None = None,
        priority: int = 0,
        timeout_s: float | None = None,
    ) -> Reply[Any]:
        """Run the graph from a state and return the reply of the state at its end.

        Parameters:
            run: the name under which the run is kept, and resumed.
        """
        return self._send(Infer(_begin(value, run), priority, require_timeout(timeout_s)))

    def stream(
        self,
        value: Mapping[str, Any],
        *,
        run: str | None = None,
        priority: int = 0,
        timeout_s: float | None = None,
    ) -> Stream:
        """Run the graph from a state and return `(node, update)` as nodes end."""
        stream = Stream()
        message = Infer(_begin(value, run), priority, require_timeout(timeout_s), stream)
        stream.follow(self._send(message))
        return stream

    def resume(self, run: str, *, priority: int = 0, timeout_s: float | None = None) -> Reply[Any]:
        """Go on with a run that has failed or was cancelled, or whose system is gone.

        Nodes that had run are not run again. The reply fails with InvalidArgument if there is no
        such run, or if it is under way.
        """
        return self._send(Infer(Begin(run, None), priority, require_timeout(timeout_s)))

    def checkpoint(self, run: str) -> Checkpoint:
        """Return where a run stands.

        Raises:
            InvalidArgument: there is no such run.
        """
        return _load(self._checkpoints, run)


class Run:
    """A run that is under way."""

    def __init__(self, entry: Entry, name: str | None) -> None:
        self.entry, self.name, self.at = entry, name, Checkpoint({})
        self.calls: dict[str, Call] = {}


class GraphActor(PatternActor):
    """Takes runs from step to step; nodes run in threads, and all else on the event loop.

    Parameters:
        taken: how often runs took each edge, by its position and its target; outlives restarts.
    """

    noun = "node"

    def __init__(
        self,
        record: Record,
        limits: Limits,
        graph: AgentGraph,
        checkpoints: Checkpoints,
        max_running: int,
        taken: Counter[tuple[int, str]],
    ) -> None:
        super().__init__(record, limits)
        self._graph, self._checkpoints, self._most = graph, checkpoints, max_running
        self._taken = taken
        self._runs: dict[int, Run] = {}
        self._stages: dict[str, Calls] = {}

    def parts(self) -> tuple[Part, ...]:
        """Return the nodes, with how many runs are at each."""
        at = Counter(name for run in list(self._runs.values()) for name in list(run.calls))
        return tuple(self._part(node, at[name]) for name, node in self._graph.nodes.items())

    def _part(self, node: Node, running: int) -> Part:
        record, name = self.record, node.name
        where = "on " + ", ".join(one.name for one in node.stage.devices)
        most = "" if node.visits is None else f"at most {node.visits} a run"
        detail = ", ".join(filter(None, (where if node.stage.devices else "", most)))
        return Part(name, "", detail, 0, running, record.done[name], record.missed[name])

    def ways(self) -> tuple[Passage, ...]:
        """Return the edges, with how often runs took each; any thread."""
        return tuple(
            Passage(
                way.sources,
                way.targets,
                way.choose is not None,
                tuple(self._taken[position, one] for one in way.targets),
            )
            for position, way in enumerate(self._graph.ways)
        )

    def started(self) -> None:
        """Make what calls the nodes."""
        super().started()
        self.record.ways = self.ways
        self._stages = {one.name: self.calls_of(one.stage) for one in self._graph.nodes.values()}

    def enqueue(self, entry: Entry) -> None:
        """Look whether the run's name fits.

        Raises:
            InvalidArgument: it is taken, or there is none to resume.
        """
        name, at = entry.ask.value
        if name is None:
            return
        others = [*self.queued.values(), *(run.entry for run in self._runs.values())]
        if any(one.ask.value.run == name and one is not entry for one in others):
            raise InvalidArgument(f"run {name!r} is under way")
        if at is None:
            _load(self._checkpoints, name)
        elif name in self._checkpoints:
            raise InvalidArgument(f"there is a run {name!r}; resume it, or take another name")

    def advance(self) -> None:
        """Begin runs."""
        while self.queued and len(self._runs) < self._most:
            entry = self.first
            self.begin(entry)
            name, at = entry.ask.value
            run = self._runs[entry.number] = Run(entry, name)
            self._try(run, self._begin_run, run, at)

    def left(self, entry: Entry) -> None:
        """End the nodes of a run that nobody waits for."""
        self._leave(self._runs[entry.number])

    # --- a run, step by step ---

    def _begin_run(self, run: Run, at: Checkpoint | None) -> None:
        run.at = _load(self._checkpoints, str(run.name)) if at is None else at
        if run.at.step == (START,):
            run.at = run.at._replace(done={START: {}})
        self._go_on(run)

    def _go_on(self, run: Run) -> None:
        """End steps that are done, and begin the nodes of the next."""
        while run.at.step and len(run.at.done) == len(run.at.step):
            self._end_step(run)
        if not run.at.step:
            self._leave(run)
            self.answer(run.entry, run.at.state)
            return
        ready = [name for name in run.at.step if name not in run.at.done]
        values = [self._graph.nodes[name].value(run.at.state) for name in ready]
        for name, value in zip(ready, values, strict=True):
            self.record.calls += 1
            self.record.members += 1
            self.record.decide("node", (run.entry.number,), name)
            done = partial(self._done, run, self._graph.nodes[name])
            run.calls[name] = self._stages[name].begin(value, done)

    def _end_step(self, run: Run) -> None:
        """Merge what the nodes of a step changed, and find those of the next."""
        at = run.at
        state = self._graph.merged(at.state, at.done)
        joined, found, taken = dict(at.joined), set[str](), list[tuple[int, str]]()
        for position, way in enumerate(self._graph.ways):
            arrived = {*joined.get(position, ()), *(set(way.sources) & set(at.step))}
            if arrived == set(way.sources):
                chosen = way.chosen(state)
                found.update(chosen)
                taken += [(position, one) for one in chosen]
                joined.pop(position, None)
            elif arrived:
                joined[position] = tuple(sorted(arrived))
        step = tuple(name for name in self._graph.nodes if name in found)
        visits = dict(at.visits)
        for name in step:
            visits[name] = visits.get(name, 0) + 1
            most = self._graph.nodes[name].visits
            if most is not None and visits[name] > most:
                text = f"node {name} of {self.record.name} ran {most} times, as often as it may"
                raise VisitsExceeded(text, node=name, visits=most)
        self._keep(run, Checkpoint(state, step, {}, visits, joined))
        self._taken.update(taken)

    def _done(
        self, run: Run, node: Node, answer: Any, error: BaseException | None, runs: int
    ) -> None:
        """Take in what came of a node."""
        if run.entry.is_over:
            return
        del run.calls[node.name]
        if error is not None:
            self.record.missed[node.name] += 1
            self._fail(run, node.name, error, runs)
        else:
            self._try(run, self._updated, run, node, answer, where=node.name)
        self.turn()

    def _updated(self, run: Run, node: Node, answer: Any) -> None:
        update = node.update(answer)
        self._keep(run, run.at._replace(done={**run.at.done, node.name: update}))
        self.record.done[node.name] += 1
        self.push(run.entry, (node.name, update))
        if len(run.at.done) == len(run.at.step):
            self._go_on(run)

    def _keep(self, run: Run, at: Checkpoint) -> None:
        if run.name is not None:
            self._checkpoints[run.name] = pickle.dumps(tuple(at))
        run.at = at

    def _try(self, run: Run, function: Any, *args: Any, where: str = "START") -> None:
        """Call what may meet a mistake in the user's functions, which fails that run alone."""
        try:
            function(*args)
        except AccelError as error:
            self._leave(run)
            self.fail(run.entry, error)
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            self._fail(run, where, error, 1)

    def _fail(self, run: Run, where: str, error: BaseException, runs: int) -> None:
        self._leave(run)
        self.fail(run.entry, stage_failed(self.record.name, where, run.entry.number, runs, error))

    def _leave(self, run: Run) -> None:
        """End what still runs of it."""
        self._runs.pop(run.entry.number, None)
        for call in run.calls.values():
            call.cancel()


def _begin(state: Mapping[str, Any], run: str | None) -> Begin:
    if not isinstance(state, Mapping):
        raise InvalidArgument(f"a run begins with a dict, its state, and not {state!r}")
    return Begin(run, Checkpoint(dict(state)))


def _load(checkpoints: Checkpoints, run: str) -> Checkpoint:
    if run not in checkpoints:
        raise InvalidArgument(f"there is no run {run!r} to resume")
    return Checkpoint(*pickle.loads(checkpoints[run]))  # noqa: S301 - the user's own; see GraphAgent
