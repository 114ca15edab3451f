"""A stand-in for CUPTI: each message under way makes a call of the driver, and that a kernel.

Its records come when it is flushed, the later ones first. Its clock began when it was imported.
"""

import time
from collections.abc import Callable
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

BEGAN = time.time_ns()


class ActivityKind(IntEnum):
    """The kinds that are asked for, with CUPTI's numbers."""

    MEMCPY = 1
    MEMSET = 2
    DRIVER = 4
    RUNTIME = 5
    CONCURRENT_KERNEL = 10
    OVERHEAD = 17
    EXTERNAL_CORRELATION = 39


class ExternalCorrelationKind(IntEnum):
    """Whose ids they are."""

    CUSTOM0 = 3
    CUSTOM1 = 4


class CallbackDomain(IntEnum):
    """Whose functions are numbered."""

    DRIVER_API = 1
    RUNTIME_API = 2


class ActivityOverheadKind(IntEnum):
    """What CUPTI has done for itself."""

    CUPTI_BUFFER_FLUSH = 1 << 16


class cuptiError(Exception):  # noqa: N801 - CUPTI's name
    """What CUPTI refuses."""


class ActivityMemcpyKind(IntEnum):
    """Which way a copy went."""

    HTOD = 1
    DTOH = 2


enabled: set[int] = set()
waiting: list[Any] = []
_stack: list[int] = []
_callbacks: list[Callable[..., Any]] = []
_calls = iter(range(1, 1 << 62))


def activity_register_callbacks(
    requested: Callable[[], Any], completed: Callable[[Any], Any]
) -> None:
    """Note whom to give records."""
    size, most = requested()
    assert size > 0
    assert most == 0
    _callbacks[:] = [completed]


def activity_enable(kind: int) -> None:
    """Record a kind."""
    enabled.add(kind)


def activity_push_external_correlation_id(kind: int, id: int) -> None:  # noqa: A002 - CUPTI's name
    """Begin a message: it makes a call, which launches a kernel of a microsecond."""
    assert kind == ExternalCorrelationKind.CUSTOM0
    _stack.append(id)
    call, start = next(_calls), get_timestamp()
    waiting.append(correlated(call, id))
    waiting.append(called(call, start, start + 500))
    waiting.append(kernel(call, start, start + 1000, name=f"kernel of {id}"))


def activity_pop_external_correlation_id(kind: int) -> int:
    """End it."""
    assert kind == ExternalCorrelationKind.CUSTOM0
    return _stack.pop()


def activity_flush_all(flag: int) -> None:
    """Give all records."""
    assert flag == 1
    assert enabled | {ActivityKind.OVERHEAD} == set(map(int, ActivityKind))
    if ActivityKind.OVERHEAD in enabled:
        waiting.append(overhead(get_timestamp(), get_timestamp() + 40))
    given = waiting[::-1]
    waiting.clear()
    _callbacks[0](given)


def get_callback_name(domain: int, cbid: int) -> str:
    """Return the name of a function, of those few that there are."""
    names = {(1, 307): "cuLaunchKernel", (2, 211): "cudaLaunchKernel_v7000"}
    if (domain, cbid) not in names:
        raise cuptiError
    return names[domain, cbid]


def get_timestamp() -> int:
    """Return the nanoseconds since it was imported."""
    return time.time_ns() - BEGAN


def correlated(call: int, id_: int, kind: int = ExternalCorrelationKind.CUSTOM0) -> Any:
    """Make the record that says for whom a call was made."""
    return SimpleNamespace(
        kind=ActivityKind.EXTERNAL_CORRELATION,
        correlation_id=call,
        external_id=id_,
        external_kind=kind,
    )


def called(
    call: int, start: int, end: int, cbid: int = 307, kind: int = ActivityKind.DRIVER
) -> Any:
    """Make the record of a call of CUDA."""
    return SimpleNamespace(
        kind=kind, correlation_id=call, cbid=cbid, start=start, end=end, thread_id=4242
    )


def overhead(start: int, end: int, kind: int = ActivityOverheadKind.CUPTI_BUFFER_FLUSH) -> Any:
    """Make the record of what CUPTI has done for itself, which belongs to no call."""
    return SimpleNamespace(kind=ActivityKind.OVERHEAD, overhead_kind=kind, start=start, end=end)


def kernel(call: int, start: int, end: int, name: str = "kernel") -> Any:
    """Make the record of a kernel."""
    return SimpleNamespace(
        kind=ActivityKind.CONCURRENT_KERNEL,
        correlation_id=call,
        name=name,
        start=start,
        end=end,
        stream_id=7,
        **{f"grid_{axis}": at for axis, at in zip("xyz", (4, 2, 1), strict=True)},
        **{f"block_{axis}": at for axis, at in zip("xyz", (32, 1, 1), strict=True)},
    )
