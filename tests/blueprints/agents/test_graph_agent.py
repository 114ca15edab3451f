"""Graphs of nodes, against a plain interpreter; resumed at every node; on devices that are lost."""

import graphlib
import itertools
import operator
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import Device, System, blas
from accel_lab.blueprints.agents import (
    END,
    START,
    AgentGraph,
    GraphAgent,
    MergeConflict,
    Sends,
    UnboundedCycle,
    VisitsExceeded,
    as_function,
)
from accel_lab.blueprints.patterns import DynamicBatchingServer, stage
from accel_lab.errors import Cancelled, InvalidArgument, StageFailed
from accel_lab.libraries.array.products.matmul import Matmul
from accel_lab.testing import Bench, Faults
from tests.blueprints.patterns.load import adds_up, load

Edges = list[tuple[int, int]]
LIST = {"seen": operator.add}


def says(bench: Bench, name: str, seconds: float = 1.0) -> Any:
    """Return a node that adds its name, and how much it saw, to a list."""
    return bench.stage(lambda s: {"seen": [f"{name}{len(s['seen'])}"]}, seconds=seconds, name=name)


def chosen(state: dict[str, Any], targets: list[str]) -> list[str]:
    """Choose some targets, by what has been seen."""
    return [one for n, one in enumerate(targets) if (n + len(state["seen"])) % 3] or targets[:1]


def interpreted(count: int, onward: dict[int, list[int]], branches: set[int]) -> list[str]:
    """Run the same graph by hand: all of a step at once, in their order."""
    seen: list[str] = []
    step = [0]
    while step:
        seen = seen + [f"n{one}{len(seen)}" for one in step]
        state, ahead = {"seen": seen}, set[int]()
        for one in step:
            names = [f"n{other}" for other in onward[one]] or [END]
            found = chosen(state, names) if one in branches else names
            ahead |= {int(name[1:]) for name in found if name != END}
        step = [one for one in range(count) if one in ahead]
    return seen


@settings(max_examples=50, deadline=None)
@given(data=st.data(), count=st.integers(1, 6))
def test_a_run_goes_as_a_plain_interpreter_does(data: st.DataObject, count: int) -> None:
    """Edges lead from each node to later ones; some nodes choose among them."""
    onward = {
        one: sorted(data.draw(st.sets(st.integers(one + 1, count - 1), max_size=3)))
        if one + 1 < count
        else []
        for one in range(count)
    }
    branches = data.draw(st.sets(st.integers(0, count - 1)))
    graph = AgentGraph(LIST).edge(START, "n0")
    with Bench() as bench:
        for one in range(count):
            graph.node(f"n{one}", says(bench, f"n{one}", data.draw(st.sampled_from([0.5, 1, 2]))))
            targets = [f"n{other}" for other in onward[one]] or [END]
            if one in branches:
                graph.branch(f"n{one}", partial(chosen, targets=targets), targets)
            else:
                for target in targets:
                    graph.edge(f"n{one}", target)
        if any(one not in {t for ts in onward.values() for t in ts} for one in range(1, count)):
            with pytest.raises(InvalidArgument, match="no edge leads from START"):
                GraphAgent(bench, graph)
            return
        agent = GraphAgent(bench, graph)
        replies = [agent.ask({"seen": []}) for _ in range(3)]
        expected = interpreted(count, onward, branches)
        for reply in replies:
            assert bench.answer(reply)["seen"] == expected
        assert adds_up(agent.statistics)


@given(
    edges=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=10),
    bounded=st.sets(st.integers(0, 4), max_size=2),
)
def test_a_graph_is_refused_if_it_may_go_round_for_ever(edges: Edges, bounded: set[int]) -> None:
    """The standard library's sorter says whether there is a cycle."""
    graph = AgentGraph()
    for one in range(5):
        graph.node(f"{one}", dict, visits=3 if one in bounded else None)
        graph.edge(START, f"{one}").edge(f"{one}", END)
    sorter: graphlib.TopologicalSorter[int] = graphlib.TopologicalSorter()
    for one, other in edges:
        graph.branch(f"{one}", lambda _: END, [f"{other}", END])
        if not {one, other} & bounded:
            sorter.add(other, one)
    try:
        sorter.prepare()
    except graphlib.CycleError:
        with pytest.raises(UnboundedCycle, match="->") as found:
            graph.check()
        path = found.value.path
        assert path[0] == path[-1]
        assert len({*path}) == len(path) - 1 > 0
        steps = list(itertools.pairwise(path))
        assert all((int(one), int(other)) in edges for one, other in steps)
        assert not {int(one) for one in path} & bounded
    else:
        graph.check()


def test_a_bounded_cycle_ends_or_says_so(bench: Bench) -> None:
    def graph(visits: int) -> AgentGraph:
        counted = AgentGraph({"n": operator.add}).edge(START, "more")
        counted.node("more", bench.stage(lambda _: {"n": 1}), visits=visits)
        return counted.branch("more", lambda s: END if s["n"] == 4 else "more", ["more", END])

    assert bench.answer(GraphAgent(bench, graph(4)).ask({"n": 0})) == {"n": 4}
    with pytest.raises(VisitsExceeded, match="more") as found:
        bench.answer(GraphAgent(bench, graph(3)).ask({"n": 0}))
    assert (found.value.node, found.value.visits) == ("more", 3)


def test_branches_run_beside_each_other_and_join(bench: Bench) -> None:
    graph = AgentGraph(LIST)
    for name, seconds in (("a", 3.0), ("b", 1.0), ("b2", 1.0), ("c", 1.0)):
        graph.node(name, says(bench, name, seconds))
    graph.edge(START, "a").edge(START, "b").edge("b", "b2").edge(["a", "b2"], "c").edge("c", END)
    stream = (agent := GraphAgent(bench, graph)).stream({"seen": []})
    bench.run(2.9)
    assert not stream.reply.done
    assert bench.answer(stream.reply)["seen"] == ["a0", "b0", "b22", "c3"]
    assert bench.clock.now() == pytest.approx(5.0)  # a beside b, then b2, then c once
    assert [name for name, _ in stream] == ["b", "a", "b2", "c"]
    assert agent.statistics.calls == 4


def test_a_join_waits_for_all_again_in_the_next_round(bench: Bench) -> None:
    graph = AgentGraph(LIST)
    for name in ("a", "b", "b2"):
        graph.node(name, says(bench, name))
    graph.node("c", says(bench, "c"), visits=5).edge(START, "a").edge(START, "b").edge("b", "b2")
    graph.edge(["a", "b2"], "c").branch("c", lambda _: "b", ["b", END])
    found = bench.answer(GraphAgent(bench, graph).ask({"seen": []}))
    assert found["seen"] == ["a0", "b0", "b22", "c3", "b4", "b25"]  # a came once, and so did c


def test_two_writers_of_a_key_need_a_reducer(bench: Bench) -> None:
    graph = AgentGraph()
    for name in "ab":
        graph.node(name, bench.stage(lambda _: {"x": 1}, name=name))
        graph.edge(START, name).edge(name, END)
    with pytest.raises(MergeConflict, match="'x'") as found:
        bench.answer(GraphAgent(bench, graph).ask({}))
    assert found.value.nodes == ("a", "b")
    graph.reducers["x"] = operator.add
    assert bench.answer(GraphAgent(bench, graph).ask({})) == {"x": 2}
    assert bench.answer(GraphAgent(bench, graph).ask({"x": 5})) == {"x": 7}


@pytest.mark.parametrize("fails", range(1, 5))
def test_a_run_resumes_where_it_failed(bench: Bench, fails: int) -> None:
    """Whichever node fails, those that had run are not run again, in another actor, too."""
    ran: list[str] = []
    faults = Faults({fails: ValueError("broken")})
    kept: dict[str, bytes] = {}

    def agent() -> GraphAgent:
        graph = AgentGraph(LIST)
        for place, name in enumerate("abcd"):

            def node(state: dict[str, Any], name: str = name) -> dict[str, list[str]]:
                ran.append(name)
                return {"seen": [f"{name}{len(state['seen'])}"]}

            graph.node(name, bench.stage(faults.into(node), seconds=1 + place / 8, name=name))
        graph.edge(START, "a").edge("a", "b").edge("a", "c").edge(["b", "c"], "d").edge("d", END)
        return GraphAgent(bench, graph, checkpoints=kept)

    first = agent()
    with pytest.raises(StageFailed, match="broken"):
        bench.answer(first.ask({"seen": []}, run="mine"))
    had = list(ran)
    assert len(had) == fails - 1
    with pytest.raises(InvalidArgument, match="resume it"):
        bench.answer(first.ask({"seen": []}, run="mine"))
    first.close()
    second = agent()
    expected = ["a0", "b1", "c1", "d3"]
    assert bench.answer(second.resume("mine"))["seen"] == expected
    assert sorted(ran) == ["a", "b", "c", "d"]
    assert bench.answer(second.resume("mine"))["seen"] == expected  # it is over
    assert len(ran) == 4
    assert second.checkpoint("mine").step == ()
    with pytest.raises(InvalidArgument, match="no run 'other'"):
        bench.answer(second.resume("other"))


def test_a_cancelled_run_leaves_its_name_and_resumes(bench: Bench) -> None:
    graph = AgentGraph(LIST).node("a", says(bench, "a")).node("b", says(bench, "b"))
    agent = GraphAgent(bench, graph.edge(START, "a").edge("a", "b").edge("b", END))
    reply = agent.ask({"seen": []}, run="one")
    bench.run(1.5)
    with pytest.raises(InvalidArgument, match="under way"):
        bench.answer(agent.resume("one"))
    reply.cancel()
    bench.run(0.1)
    assert isinstance(reply.error, Cancelled)
    assert agent.checkpoint("one").step == ("b",)
    assert bench.answer(agent.resume("one"))["seen"] == ["a0", "b1"]
    assert adds_up(agent.statistics)


def test_mistakes_in_a_graph_are_named(bench: Bench) -> None:
    def graph() -> AgentGraph:
        return AgentGraph().node("a", says(bench, "a")).edge(START, "a")

    for wrong, text in (
        (graph(), "leads on from 'a'"),
        (graph().edge("a", "b"), "'b'"),
        (graph().edge("a", END).edge(END, "a"), "END"),
        (graph().edge("a", END).edge([], "a"), "from nodes to nodes"),
        (graph().edge("a", END).node("b", says(bench, "b")).edge("b", END), "node 'b'"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            GraphAgent(bench, wrong)
    for name in ("a", END, ""):
        with pytest.raises(InvalidArgument, match="name"):
            graph().node(name, dict)
    agent = GraphAgent(bench, graph().branch("a", lambda _: "nowhere", [END]))
    with pytest.raises(InvalidArgument, match="nowhere"):
        bench.answer(agent.ask({"seen": []}))
    with pytest.raises(InvalidArgument, match="dict"):
        agent.ask([1])  # type: ignore[arg-type]

    def broken(*_: Any) -> Any:
        raise KeyError("lost")

    for mistaken, text in (
        (AgentGraph().node("a", says(bench, "a"), takes=broken).edge("a", END), "takes= of node a"),
        (AgentGraph().node("a", says(bench, "a"), gives=broken).edge("a", END), "stage a of"),
        (AgentGraph().node("a", says(bench, "a")).branch("a", broken, [END]), "branch after a"),
        (AgentGraph({"seen": broken}).node("a", says(bench, "a")).edge("a", END), "of 'seen'"),
    ):
        agent = GraphAgent(bench, mistaken.edge(START, "a"))
        with pytest.raises(StageFailed, match=text) as failed:
            bench.answer(agent.ask({"seen": []}))
        assert isinstance(failed.value.__cause__, KeyError)
        assert adds_up(agent.statistics)
    odd = AgentGraph().node("odd", bench.stage(lambda _: 5, name="odd")).edge(START, "odd")
    with pytest.raises(InvalidArgument, match="node odd returned int"):
        bench.answer(GraphAgent(bench, odd.edge("odd", END)).ask({}))
    unkept = AgentGraph().node("a", bench.stage(lambda _: {"x": threading.Lock()}, name="a"))
    with pytest.raises(StageFailed, match="pickle"):
        bench.answer(GraphAgent(bench, unkept.edge(START, "a").edge("a", END)).ask({}, run="r"))


def test_nodes_are_functions_messages_and_patterns_while_contexts_are_killed(
    lab: System, device: Device
) -> None:
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    faults = Faults({3: "kill", 7: "kill"})

    @stage(devices=device)
    @faults.into
    def doubled(device: Device, state: dict[str, Any]) -> Any:
        return {"x": device.run(lambda x: 2 * x, device.put(state["x"]))}

    def product(x: Any) -> Matmul:
        return Matmul(device.put(x), device.put(weights))

    before = device.generation
    with DynamicBatchingServer(lab, lambda rows: [float(row.sum()) for row in rows]) as sums:
        graph = (
            AgentGraph()
            .node("doubled", doubled)
            .node("product", Sends(device, product), takes=lambda s: s["x"], gives="y")
            .node("sum", sums, takes=lambda s: s["y"], gives="sum")
            .edge(START, "doubled")
            .edge("doubled", "product")
            .edge("product", "sum")
            .edge("sum", END)
        )
        with GraphAgent(lab, graph) as agent:
            x = np.ones((1, 2), np.float32)
            found = load(lambda n: agent.ask({"x": n * x}, run=f"run {n}"), 12, threads=3)
            for number, state in found.items():
                np.testing.assert_array_equal(state["y"], 2 * number * x @ weights)
                assert state["sum"] == 2 * number * weights.sum()
            assert adds_up(agent.statistics)
    assert len(faults.struck) == 2
    assert device.generation > before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_graph_of_langgraph_uses_our_nodes(lab: System, device: Device) -> None:
    langgraph = pytest.importorskip("langgraph.graph", reason="langgraph is not installed")

    @stage(devices=device)
    def squares(device: Device, values: list[float]) -> Any:
        x = device.put(np.array(values))
        return blas.gemm(x.reshape(-1, 1), device.put(np.ones((1, 1)))).reshape(-1) * x

    inner = AgentGraph({"n": operator.add}).node("one", lambda _: {"n": 1}, visits=2)
    inner.edge(START, "one").branch("one", lambda s: END if s["n"] > 8 else "one", ["one", END])
    with DynamicBatchingServer(lab, squares) as server, GraphAgent(lab, inner) as agent:
        graph = langgraph.StateGraph(dict)
        graph.add_node(
            "square", as_function(server, takes=lambda s: s["n"], gives=lambda n: {"n": float(n)})
        )
        graph.add_node("agent", as_function(agent))
        graph.add_edge(langgraph.START, "square")
        graph.add_edge("square", "agent")
        graph.add_edge("agent", langgraph.END)
        assert graph.compile().invoke({"n": 3.0}) == {"n": 10.0}
        assert (server.statistics.answered, agent.statistics.answered) == (1, 1)
