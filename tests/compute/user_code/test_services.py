"""What a function in a context has of it: from its arguments, each context its own."""

from collections.abc import Iterator
from typing import Any

import pytest

from accel_lab.backends.host.device import HostBackend
from accel_lab.compute.actors.run import RunActor
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.execution.context import Context
from accel_lab.compute.message.builtin import Run
from accel_lab.compute.message.service import in_context
from accel_lab.compute.residency.holdings import ContextMemory
from accel_lab.compute.user_code.call import pack_call
from accel_lab.compute.wire.codec import Failure, batch, encode_entry
from tests.compute.wires import Wire, service_of


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Context]]:
    """Give two contexts of one process."""
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: [Run])
    arena: Any = None
    made = [Context(HostBackend(n), [RunActor], arena, n, {}, None) for n in (1, 2)]
    yield made
    for context in made:
        context.close()


def call(context: Context, function: Any, *args: Any) -> None:
    """Have a context call a function, as `device.run` has it."""
    refs, blob = pack_call(function, args, {})
    wire = Wire([batch([encode_entry(1, 0, None, Run(refs, blob, pure=False))])])
    service_of(wire, context).run()
    assert not [one for one in wire.sent if isinstance(one, Failure)], wire.sent


def bind(workspaces: Workspaces, value: object) -> None:
    workspaces.of("test").names["bound"] = value


def test_each_context_has_cells_of_its_own(contexts: list[Context]) -> None:
    first, second = contexts
    call(first, bind, in_context(Workspaces), 7)
    assert first.service(Workspaces).of("test").names["bound"] == 7
    assert "bound" not in second.service(Workspaces).of("test").names
    things = [one.service(ContextMemory).holdings().things for one in contexts]
    assert [[thing.name for thing in found] for found in things] == [["bound"], []]


def test_an_object_of_the_context_travels_inside_others(contexts: list[Context]) -> None:
    def bind_in(given: dict[str, list[Workspaces]]) -> None:
        bind(given["here"][0], "inside")

    call(contexts[0], bind_in, {"here": [in_context(Workspaces)]})
    assert contexts[0].service(Workspaces).of("test").names["bound"] == "inside"


def test_an_actor_that_is_replaced_finds_what_cells_have_bound(contexts: list[Context]) -> None:
    context = contexts[0]
    call(context, bind, in_context(Workspaces), 7)
    assert context.restart("run")
    call(context, bind, in_context(Workspaces), 8)
    assert context.service(Workspaces).of("test").names["bound"] == 8
    assert context.service(Workspaces) is context.service(Workspaces)


def numbered(count: int) -> list[Any]:
    import numpy as np

    return [np.ones(2) for _ in range(count)]


def test_each_context_counts_the_buffers_of_its_answers(contexts: list[Context]) -> None:
    call(contexts[0], numbered, 3)
    call(contexts[1], numbered, 2)
    assert [one.answered for one in contexts] == [3, 2]
