"""What the agents view draws, as plain values: `widgets/agents/draw.js` draws the same.

A state is `{lab, agents, closed}`. An agent is `{name, state, …, width, height, nodes, edges}`;
what is zero, empty or unknown is left out.
"""

from accel_lab.compute.events.patterns import Part, PatternLook
from accel_lab.views.agents.layout import END, START, Edge, Layout, layout
from accel_lab.views.patterns.state import ENDS, state_in, took
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.view import State

STEPS = 5


def state_of(scene: Scene, only: str = "") -> State:
    """Fold a scene into plain values.

    Parameters:
        only: the agent that is drawn; all when empty.
    """
    name = "" if scene.tree is None else scene.tree.name
    agents = [
        _agent(one, state_in(scene, one.name))
        for one in scene.patterns
        if one.ways and only in ("", one.name)
    ]
    return {"lab": name, "agents": agents, "closed": scene.closed}


def _agent(look: PatternLook, word: str) -> State:
    edges = _edges(look)
    drawn = layout(tuple(one.name for one in look.parts), tuple(edges))
    ends = {one: getattr(look, one) for one in ENDS if getattr(look, one)}
    state: State = {"name": look.name, "state": word, "waiting": look.waiting}
    state |= {"running": look.running, "answered": look.answered, **ends}
    if look.reruns:
        state["reruns"] = look.reruns
    if look.answered:
        state |= {"p50": took(look.p50_s), "p99": took(look.p99_s)}
    state |= {"width": drawn.width, "height": drawn.height}
    started, ended = Part(START, done=look.asked - look.waiting), Part(END, done=look.answered)
    state["nodes"] = [_node(one, drawn) for one in (started, *look.parts, ended)]
    state["edges"] = [_edge(edge, told, drawn) for edge, told in edges.items()]
    steps = [one for one in look.decisions if one.decision == "node"][:STEPS]
    if steps:
        state["steps"] = [{"at": one.at, "run": one.requests[0], "node": one.why} for one in steps]
    return state


def _edges(look: PatternLook) -> dict[Edge, State]:
    """Return the edges, each once, with what is said of it."""
    edges: dict[Edge, State] = {}
    for way in look.ways:
        for target, taken in zip(way.targets, way.taken, strict=True):
            for source in way.sources:
                told = edges.setdefault((source, target), {})
                if taken:
                    told["taken"] = told.get("taken", 0) + taken
                if way.is_chosen:
                    told["chosen"] = True
                if len(way.sources) > 1:
                    told["joins"] = True
    return edges


def _node(one: Part, drawn: Layout) -> State:
    box = drawn.boxes[one.name]
    state: State = {"name": one.name, "x": round(box.x, 1), "y": round(box.y, 1)}
    state |= {"width": box.width, "height": box.height}
    optional = {name: getattr(one, name) for name in ("running", "done", "failed", "detail")}
    return state | {name: value for name, value in optional.items() if value}


def _edge(edge: Edge, told: State, drawn: Layout) -> State:
    line = drawn.lines[edge]
    state: State = {"from": edge[0], "to": edge[1], "path": line.path}
    state |= {"end": [round(one, 1) for one in line.end]}
    state |= {"label": [round(one, 1) for one in line.label]}
    return state | told | ({"back": True} if line.is_back else {})
