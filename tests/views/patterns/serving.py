"""A system that serves: patterns of several kinds and an agent, each with something under way."""

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from accel_lab import System
from accel_lab.blueprints.agents import END, START, AgentGraph, GraphAgent
from accel_lab.blueprints.patterns import (
    DynamicBatchingServer,
    FairShareScheduler,
    ModelReplicaPool,
    Tenant,
)

WAIT_S = 30.0


class Serving(NamedTuple):
    """What serves, and what lets it go on."""

    batching: DynamicBatchingServer
    fair: FairShareScheduler
    pool: ModelReplicaPool
    agent: GraphAgent
    gate: threading.Event
    replies: list[Any]


def graph(gate: threading.Event) -> AgentGraph:
    """Return a graph with a fork, a join, a branch and a cycle; `check` waits for the gate."""

    def check(state: dict[str, Any]) -> dict[str, Any]:
        assert gate.wait(WAIT_S)
        if state.get("bad"):
            raise ValueError("a made-up mistake")
        return {"tries": state["tries"] + 1}

    made = AgentGraph()
    made.node("plan", lambda state: {"tries": state.get("tries", 0)})
    made.node("search", lambda _: {"found": 1}).node("recall", lambda _: {"known": 1})
    made.node("check", check, visits=3).node("answer", lambda _: {"answer": "yes"})
    made.edge(START, "plan").edge("plan", "search").edge("plan", "recall")
    made.edge(["search", "recall"], "check").edge("answer", END)
    made.branch("check", lambda s: "answer" if s["tries"] > 1 else "check", ["check", "answer"])
    return made


def settle(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def serve(lab: System) -> Serving:
    """Make the patterns, answer some requests, and leave some under way."""
    gate = threading.Event()

    def slow(value: Any) -> Any:
        if value == "wait":
            assert gate.wait(WAIT_S)
        if value == "bad":
            raise ValueError("a made-up mistake")
        return value

    batching = DynamicBatchingServer(
        lab, lambda values: values, max_batch=4, max_wait_s=60.0, name="embeddings"
    )
    for reply in [batching.ask(n) for n in range(8)]:
        reply.result(WAIT_S)
    tenants = {"research": Tenant(weight=2.0), "web": Tenant(weight=1.0)}
    fair = FairShareScheduler(lab, slow, tenants, parallelism=1, name="shared model")
    fair.ask(1, tenant="web").result(WAIT_S)
    failed = fair.ask("bad", tenant="web")
    failed.add_waiter(lambda: None)
    replies = [fair.ask("wait", tenant="research")]
    replies += [fair.ask(n, tenant="web") for n in range(2)]
    pool = ModelReplicaPool(lab, slow, replicas=2, name="replicas")
    for n in range(6):
        pool.ask(n).result(WAIT_S)
    replies.append(pool.ask("wait"))
    agent = GraphAgent(lab, graph(gate), name="researcher")
    replies += [agent.ask({}), agent.ask({})]
    settle(lambda: fair.statistics.waiting == 2 and pool.statistics.running == 1)
    settle(lambda: agent.statistics.calls == 8)
    return Serving(batching, fair, pool, agent, gate, replies)
