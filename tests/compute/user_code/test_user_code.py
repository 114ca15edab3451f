"""What a context does around a function of the user's, without a process around it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from accel_lab import System
from accel_lab.backends.host.device import HostBackend
from accel_lab.compute.actors.run import RunActor
from accel_lab.compute.execution.context import Context
from accel_lab.compute.message.builtin import Run
from accel_lab.compute.user_code.call import pack_call
from accel_lab.compute.wire.codec import batch, encode_entry
from accel_lab.errors import InvalidArgument, UserCodeError
from tests.compute.wires import Wire, service_of


class Settled(HostBackend):
    """Counts how often it was settled."""

    times = 0

    def settle(self) -> None:
        self.times += 1


def nothing() -> None:
    return None


def fail() -> None:
    raise ValueError


@pytest.mark.parametrize("function", [nothing, fail])
def test_what_is_current_is_set_right_after_every_function(
    monkeypatch: pytest.MonkeyPatch, function: Callable[[], None]
) -> None:
    """Also where it returns no array; on a card it may have left another stream current."""
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: [Run])
    arena: Any = None
    backend = Settled(0)
    context = Context(backend, [RunActor], arena, 1, {}, None)
    refs, blob = pack_call(function, (), {})
    entry = encode_entry(1, 0, None, Run(refs, blob, pure=False))
    service_of(Wire([batch([entry])]), context).run()
    assert backend.times == 1
    context.close()


async def later(*_: Any) -> int:
    return 5


def test_an_async_function_is_refused_by_name() -> None:
    with System("host", devices=1) as lab:
        (cpu,) = lab.devices
        with pytest.raises(InvalidArgument, match=r"function later is async.*asyncio\.run\(…\)"):
            cpu.run(later)
        with pytest.raises(InvalidArgument, match="the function later is async"):
            cpu.function(later)
        with pytest.raises(InvalidArgument, match="the callback later is async"):
            cpu.watch(later)
        with pytest.raises(UserCodeError, match=r"it returned the coroutine later\(\)"):
            cpu.run(lambda: later()).result(30)  # noqa: PLW0108 - no async function itself
        assert cpu.run(lambda: asyncio.run(later())).result(30) == 5
