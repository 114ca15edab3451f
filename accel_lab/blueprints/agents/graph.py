"""What an agent does, as a graph: nodes, edges between them, and how their updates are merged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from accel_lab.actor.actor import ActorRef
from accel_lab.actor.message import Message
from accel_lab.blueprints.agents.errors import MergeConflict, UnboundedCycle
from accel_lab.blueprints.patterns.base.pattern import Service
from accel_lab.blueprints.patterns.base.stage import Stage, as_stage
from accel_lab.compute.device import Device
from accel_lab.errors import InvalidArgument, StageFailed
from accel_lab.pipeline.stage import require_count

START, END = "START", "END"
State = dict[str, Any]
Takes = Callable[[State], Any]
Gives = str | Callable[[Any], Mapping[str, Any]]


class Sends(NamedTuple):
    """A node that sends a message: to a device or an actor, made from the state each time."""

    target: Device | ActorRef[Any]
    message: Callable[[Any], Message[Any]]

    def send(self, value: Any) -> Any:
        """Send the message for a value, and return its reply."""
        target: Any = self.target  # a device takes operations, and an actor its own messages
        return target.ask(self.message(value))


class Node(NamedTuple):
    """A node as `AgentGraph.node` was given it."""

    name: str
    stage: Stage
    takes: Takes | None
    gives: Gives | None
    visits: int | None

    def value(self, state: Mapping[str, Any]) -> Any:
        """Return what its function gets."""
        if self.takes is None:
            return dict(state)
        return _called(f"takes= of node {self.name}", self.takes, dict(state))

    def update(self, answer: Any) -> State:
        """Return what its answer changes.

        Raises:
            InvalidArgument: the answer is no update.
        """
        return _update(answer, self.gives, f"node {self.name}")


class Way(NamedTuple):
    """Where a run goes after nodes: after all of `sources`, to those of `targets` chosen."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    choose: Callable[[State], str | Iterable[str]] | None = None

    def chosen(self, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return where to go.

        Raises:
            InvalidArgument: the function chose what is not among its targets.
        """
        if self.choose is None:
            return self.targets
        found = _called(f"the branch after {self.sources[0]}", self.choose, dict(state))
        names = (found,) if isinstance(found, str) else tuple(found)
        for one in names:
            if one not in self.targets:
                text = f"the branch after {self.sources[0]} chose {one!r}, none of {self.targets}"
                raise InvalidArgument(text)
        return names


class AgentGraph:
    """Nodes that change a state, and the edges between them.

    A run goes in steps. All nodes of a step run beside each other, each with the state as it was
    before the step. Their updates are merged at its end, in the order in which nodes were added.

    Parameters:
        reducers: by key of the state, a function of the old and a new value, which returns what
            the key then has. It is called where the key is there; the first value is kept as it
            is. A key without one is replaced, and only one node of a step may write it.
    """

    def __init__(self, reducers: Mapping[str, Callable[[Any, Any], Any]] | None = None) -> None:
        self.reducers = dict(reducers or {})
        self.nodes: dict[str, Node] = {}
        self.ways: list[Way] = []

    def node(
        self,
        name: str,
        what: Stage | Service | Sends | Callable[..., Any],
        *,
        takes: Takes | None = None,
        gives: Gives | None = None,
        visits: int | None = None,
    ) -> "AgentGraph":
        """Add a node; return the graph.

        Parameters:
            what: a function of the state that returns its update as a dict, a `@stage`, a pattern,
                or `Sends`, which sends a message.
            takes: returns from the state what the node gets; the whole state when not given.
            gives: a key of the state that its answer is put under, or a function of the answer
                that returns the update. When not given, the answer is the update.
            visits: how often it may run in one run. A cycle needs one node that says it.

        Raises:
            InvalidArgument: the name is taken, or an option does not fit.
        """
        if name in (START, END) or name in self.nodes or not name:
            raise InvalidArgument(f"a node has a name of its own, and {name!r} is taken")
        if visits is not None:
            require_count(visits, "visits", 1)
        if isinstance(what, Sends):
            stage = Stage(what.send, parallelism=4, name=name)
        else:
            stage = as_stage(what)
        self.nodes[name] = Node(name, stage, takes, gives, visits)
        return self

    def edge(self, source: str | Sequence[str], target: str) -> "AgentGraph":
        """Go from a node to another; from a list of nodes, each time that all of them have run."""
        sources = (source,) if isinstance(source, str) else tuple(source)
        self.ways.append(Way(sources, (target,)))
        return self

    def branch(
        self, source: str, choose: Callable[[State], str | Iterable[str]], targets: Sequence[str]
    ) -> "AgentGraph":
        """Go from a node to where a quick function of the state says: to one target or several."""
        self.ways.append(Way((source,), tuple(targets), choose))
        return self

    def check(self) -> None:
        """Look whether each run of it comes to an end.

        Raises:
            InvalidArgument: an edge names no node, or a node is not reached or leads nowhere.
            UnboundedCycle: a run may go round for ever.
        """
        onward = self._onward()
        reached, ahead = {START}, [START]
        while ahead:
            found = set(onward.get(ahead.pop(), ())) - reached
            reached |= found
            ahead += found
        for name, targets in onward.items():
            if name not in reached:
                raise InvalidArgument(f"no edge leads from START to node {name!r}")
            if not targets:
                raise InvalidArgument(f"no edge leads on from {name!r}; its last edge is to END")
        free = [name for name, node in self.nodes.items() if node.visits is None]
        path = _cycle({name: [one for one in onward[name] if one in free] for name in free})
        if path:
            text = f"a run may go round for ever: {' -> '.join(path)}, and none of them has visits="
            raise UnboundedCycle(text, path=path)

    def _onward(self) -> dict[str, list[str]]:
        """Return where edges lead from each node, and from START."""
        onward: dict[str, list[str]] = {name: [] for name in (START, *self.nodes)}
        for way in self.ways:
            for one in (*way.sources, *way.targets):
                if one not in onward and one != END:
                    raise InvalidArgument(f"an edge names {one!r}, and there is no such node")
            if END in way.sources or START in way.targets or not way.sources or not way.targets:
                raise InvalidArgument(f"an edge leads from nodes to nodes, and not as {way[:2]}")
            for source in way.sources:
                onward[source] += way.targets
        return onward

    def merged(self, state: Mapping[str, Any], updates: Mapping[str, Mapping[str, Any]]) -> State:
        """Return a state with the updates of a step's nodes.

        Raises:
            MergeConflict: two of them write a key that has no reducer.
        """
        found, writers = dict(state), dict[str, str]()
        for name in self.nodes:
            for key, value in updates.get(name, {}).items():
                if key in self.reducers and key in found:
                    what = f"the reducer of {key!r}"
                    found[key] = _called(what, self.reducers[key], found[key], value)
                    continue
                if key in self.reducers:
                    found[key] = value
                    continue
                if key in writers:
                    nodes = writers[key], name
                    text = f"nodes {nodes[0]} and {nodes[1]} both wrote {key!r} in one step"
                    raise MergeConflict(text, key=key, nodes=nodes)
                found[key], writers[key] = value, name
        return found


def as_function(
    pattern: Service, *, takes: Takes | None = None, gives: Gives | None = None
) -> Callable[[State], State]:
    """Return a pattern or an agent as a function of a state, as a node of LangGraph's is.

    It blocks until the answer is there.

    Parameters:
        takes, gives: as in `AgentGraph.node`.
    """

    def call(state: State) -> State:
        value = dict(state) if takes is None else takes(state)
        return _update(pattern.ask(value).result(), gives, pattern.name)

    return call


def _called(what: str, function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        text = f"{what} failed: {type(error).__name__}: {error}"
        raise StageFailed(text, stage=what, runs=1, remedy="Look at __cause__.") from error


def _update(answer: Any, gives: Gives | None, who: str) -> State:
    found = {gives: answer} if isinstance(gives, str) else gives(answer) if gives else answer
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        text = f"{who} returned {type(found).__name__}; expected was a dict of the keys it changes"
        raise InvalidArgument(text)
    return dict(found)


def _cycle(onward: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the nodes of a cycle, the first again at its end; none where there is no cycle."""
    done: set[str] = set()
    for first in onward:
        path, ahead = [first], [iter(onward[first])]
        while path:
            for name in ahead[-1]:
                if name in path:
                    return (*path[path.index(name) :], name)
                if name not in done:
                    path.append(name)
                    ahead.append(iter(onward[name]))
                    break
            else:
                done.add(path.pop())
                ahead.pop()
    return ()
