"""The view of a system's agents: their graphs, drawn while they run."""

import weakref
from collections.abc import Callable, Iterable
from typing import ClassVar

from accel_lab import open_systems
from accel_lab.blueprints.agents.graph_agent import GraphAgent
from accel_lab.errors import InvalidArgument
from accel_lab.uncopied import Uncopied
from accel_lab.views.agents.state import state_of
from accel_lab.views.agents.words import html, text
from accel_lab.views.scene.observer import Lab, Source, Want, observer_of
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show


class AgentsView(View):
    """The graphs of the agents of a system, or that of one."""

    name = "agents"
    wants: ClassVar[frozenset[Want]] = frozenset({"patterns"})

    def fold(self, scene: Scene) -> State:
        """Fold the agents, in the order in which they began."""
        return state_of(scene, self.source.agent if isinstance(self.source, OneAgent) else "")

    def text(self, state: State) -> str:
        """Draw it as aligned lines, a paragraph an agent."""
        return text(state)

    def html(self, state: State) -> str:
        """Draw it as pictures, each with a table."""
        return html(state)


class OneAgent(Uncopied):
    """The scene of an agent's system, as the source of a view of that agent alone.

    Attributes:
        agent: its name.
    """

    _instead = "show the agent again"

    def __init__(self, system: Lab, agent: str) -> None:
        self.agent = agent
        self._observer = observer_of(system)
        self.lock = self._observer.lock

    @property
    def lab(self) -> Lab | None:
        """The agent's system."""
        return self._observer.lab

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self._observer.ended

    def look(self) -> Scene:
        """Return the scene as it is now; any thread that holds `lock`."""
        return self._observer.look()

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Sample this as long as `holder` lives."""
        self._observer.want(holder, wants)

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when something is worth a look at once; returns what ends that."""
        return self._observer.on_news(callback)


_sources: "weakref.WeakKeyDictionary[GraphAgent, OneAgent]" = weakref.WeakKeyDictionary()


def agents(shown: Lab | Source | GraphAgent, *, rate_hz: float = DEFAULT_HZ) -> AgentsView:
    """Return the graphs of agents, drawn live; display it as the last value of a cell.

    A node shows how many runs are at it now, how often it ended and how often it failed. An edge
    shows how often it was taken. One that a function chooses is dashed; one that waits until all
    nodes of a list have run says `all`.

    Parameters:
        shown: a system, or a recording of one, for all of its agents; or one `GraphAgent`.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        InvalidArgument: the agent lives in no system that is open.
        ValueError: the rate is not positive.
    """
    source = _source_of(shown) if isinstance(shown, GraphAgent) else shown
    return show(AgentsView, source, rate_hz=rate_hz)


def _source_of(agent: GraphAgent) -> OneAgent:
    found = _sources.get(agent)
    if found is None:
        system = next((one for one in open_systems.running() if one is agent.place), None)
        if system is None:
            raise InvalidArgument(f"agent {agent.name} lives in no system that is open")
        found = _sources[agent] = OneAgent(system, agent.name)
    return found
