"""Patterns and agents of a real system, as views, recordings, feeds and the lab have them."""

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from accel_lab import System, views
from accel_lab.blueprints.agents import GraphAgent, SharedGpuStateCoordinator
from accel_lab.blueprints.patterns import (
    DynamicBatchingServer,
    InferenceCascade,
    ModelHotSwapServer,
    Step,
)
from accel_lab.compute.events.patterns import PatternsSampled, looks
from accel_lab.errors import InvalidArgument, StageFailed
from accel_lab.testing import Bench
from accel_lab.views.agents import AgentsView
from accel_lab.views.lab import LabView
from accel_lab.views.patterns import PatternsView
from accel_lab.views.scene.fact_lines import decode, encode
from accel_lab.views.scene.observer import observer_of
from accel_lab.views.scene.recap import recap
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.view import State
from tests.views.patterns.serving import WAIT_S, graph, serve, settle


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host", name="lab").ready() as lab:
        yield lab


def by_name(state: State, key: str = "patterns") -> dict[str, State]:
    return {one["name"]: one for one in state[key]}


def test_views_say_what_statistics_say(lab: System) -> None:
    assert "none was made" in str(views.patterns(lab))
    assert "no graph was made" in str(views.agents(lab))
    serving = serve(lab)
    found = by_name(views.patterns(lab).sample())
    assert list(found) == ["embeddings", "shared model", "replicas", "researcher"]
    for pattern in serving[:4]:
        told, counted = found[pattern.name], pattern.statistics
        for name in ("waiting", "running", "answered", "failed", "calls"):
            assert told.get(name, 0) == getattr(counted, name), (pattern.name, name)
    assert [one["what"] for one in found["embeddings"]["decisions"]] == ["batch", "batch"]
    research, web = found["shared model"]["parts"]
    assert (research["name"], research["running"], "waiting" in research) == ("research", 1, False)
    assert (web["name"], web["waiting"], web["done"], web["failed"]) == ("web", 2, 1, 1)
    assert sum(one.get("done", 0) for one in found["replicas"]["parts"]) == 6
    assert {one["word"] for one in found["replicas"]["parts"]} == {"serves"}

    text, html = str(views.patterns(lab)), views.patterns(lab)._repr_mimebundle_()[0]["text/html"]
    for said in ("shared model: fair share, running", "research", "batch 5, 6, 7, 8: full"):
        assert said in text
    assert "<td>weight 1, cost 2</td>" in html
    assert '<th scope="row">research</th>' in html

    serving.gate.set()
    for reply in serving.replies:
        reply.result(WAIT_S)
    serving.fair.close()
    serving.pool.close()
    found = by_name(views.patterns(lab).sample())
    for name, answered in (("shared model", 4), ("replicas", 7)):
        assert (found[name]["state"], found[name]["waiting"]) == ("stopped", 0)
        assert found[name]["answered"] == sum(one["done"] for one in found[name]["parts"])
        assert found[name]["answered"] == answered


def test_a_graph_says_where_runs_are_and_where_they_went(lab: System) -> None:
    serving = serve(lab)
    view = views.agents(serving.agent)
    (agent,) = view.sample()["agents"]
    nodes, edges = by_name(agent, "nodes"), agent["edges"]
    assert [name for name, one in nodes.items() if "running" in one] == ["check"]
    assert nodes["check"]["running"] == 2
    taken = {(one["from"], one["to"]): one.get("taken", 0) for one in edges}
    assert taken["plan", "search"] == taken["search", "check"] == 2
    assert taken["check", "answer"] == taken["check", "check"] == 0
    assert {one["from"] for one in edges if "joins" in one} == {"search", "recall"}
    assert {(one["from"], one["to"]) for one in edges if "chosen" in one} == {
        ("check", "check"),
        ("check", "answer"),
    }
    serving.gate.set()
    ended = [reply.result(WAIT_S) for reply in serving.replies[-2:]]
    assert [one["answer"] for one in ended] == ["yes", "yes"]
    with pytest.raises(StageFailed):
        serving.agent.ask({"bad": True}).result(WAIT_S)
    (agent,) = view.sample()["agents"]
    check = by_name(agent, "nodes")["check"]
    assert (check.get("running", 0), check["done"], check["failed"]) == (0, 4, 1)
    taken = {(one["from"], one["to"]): one.get("taken", 0) for one in agent["edges"]}
    assert (taken["check", "check"], taken["check", "answer"], taken["answer", "END"]) == (2, 2, 2)
    assert by_name(agent, "nodes")["END"]["done"] == 2
    still = view._repr_mimebundle_()[0]
    assert 'src="data:image/svg+xml;base64,' in still["text/html"]
    assert '<th scope="row">check</th>' in still["text/html"]
    assert "check" in still["text/plain"]
    assert "? answer (2)" in still["text/plain"]


def test_the_view_of_one_agent_shows_no_other(lab: System) -> None:
    one, other = serve(lab), serve(lab)
    one.gate.set()
    other.gate.set()
    assert [a["name"] for a in views.agents(other.agent).sample()["agents"]] == ["researcher 2"]
    assert len(views.agents(lab).sample()["agents"]) == 2
    with Bench() as bench:
        lone = GraphAgent(bench, graph(one.gate), name="lone")
        with pytest.raises(InvalidArgument, match="agent lone lives in no system that is open"):
            views.agents(lone)


def test_a_recording_and_a_feed_draw_the_same(lab: System, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    with views.record(lab, path, rate_hz=30):
        serving = serve(lab)
        live, graphs = PatternsView(lab), AgentsView(lab)
        sampled, drawn = live.sample(), graphs.sample()
        serving.gate.set()
    past = views.Recording.open(path)
    assert past.damage == ""
    places = [n for n, fact in enumerate(past) if isinstance(fact, PatternsSampled)]
    assert places
    states = []
    for place in places:
        past.player.seek(place + 1)
        states.append((PatternsView(past.player).sample(), AgentsView(past.player).sample()))
    plain = [({**one, "replay": 0}, {**two, "replay": 0}) for one, two in states]
    assert ({**sampled, "replay": 0}, {**drawn, "replay": 0}) in plain

    def is_retold() -> bool:
        scene, retold = observer_of(lab).look(), Scene()
        for fact in recap(scene):
            retold.add(decode(encode(fact)))
        return retold.patterns == scene.patterns == looks(lab.events)

    settle(is_retold)  # once nothing runs any more


def test_the_lab_has_them_where_there_are_some(lab: System) -> None:
    view = LabView(lab)
    assert not {"patterns", "agents"} & set(view.sample())
    with DynamicBatchingServer(lab, lambda values: values, name="server") as server:
        server.ask(1).result(WAIT_S)
        state = view.sample()
        assert "patterns" in state
        assert "agents" not in state
        assert "server: dynamic batching, running" in view.text(state)
    assert "server: dynamic batching, stopped" in view.text(view.sample())
    del server
    settle(lambda: gc.collect() >= 0 and "patterns" not in view.sample())  # its threads end first


def test_a_cascade_shows_its_stages_while_requests_wait_in_them(lab: System) -> None:
    steps = [Step(lambda xs: [(x, 0.1) for x in xs], threshold=0.5, cost=1.0)]
    steps.append(Step(lambda xs: [(x, 1.0) for x in xs], threshold=0.0, cost=10.0))
    with InferenceCascade(lab, steps, max_wait_s=60.0, max_batch=2) as cascade:
        waits = cascade.ask(0)
        view = PatternsView(lab)
        settle(lambda: cascade.statistics.waiting == 1)
        assert by_name(view.sample())["cascade"]["parts"][0]["waiting"] == 1
        assert cascade.ask(1).result(WAIT_S).stage == 1
        assert waits.result(WAIT_S).stage == 1
        parts = by_name(view.sample())["cascade"]["parts"]
        assert [one.get("done", 0) for one in parts] == [0, 2]


def test_generations_of_a_model_and_leases_of_a_state_are_parts(lab: System) -> None:
    view = PatternsView(lab)
    with ModelHotSwapServer(lab, lambda value: value, name="model") as server:
        server.ask(1).result(WAIT_S)
        server.swap(lambda value: -value).result(WAIT_S)
        assert server.ask(1).result(WAIT_S).value == -1
        old, new = by_name(view.sample())["model"]["parts"]
        assert (old["name"], old["word"], old["done"]) == ("1", "kept", 1)
        assert (new["name"], new["word"], new["done"]) == ("2", "serves", 1)
    first = {"x": np.zeros(2)}
    with SharedGpuStateCoordinator(lab, lab.devices[0], first, name="state") as shared:
        lease = shared.acquire("write").result(WAIT_S)
        (part,) = by_name(view.sample())["state"]["parts"]
        assert (part["name"], part["word"]) == (str(lease.number), "writes")
        shared.release(lease).result(WAIT_S)
        assert "parts" not in by_name(view.sample())["state"]
