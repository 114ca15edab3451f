"""Which request has broken a context: the one that ran, or the only one that could."""

from typing import Any

import pytest

from accel_lab.actor.reply import Reply
from accel_lab.compute.lineage.recorded_message import RUN, Step, step_of
from accel_lab.compute.message.operation import Operation
from accel_lab.compute.recovery.culprit import culprit_of
from accel_lab.compute.requests.answers import InFlight
from accel_lab.errors import ContextLost
from accel_lab.libraries.array.library import Zeros
from accel_lab.libraries.jit.messages import LaunchKernel

SEGFAULT = {"name": "SIGSEGV"}
TRAP: dict[str, Any] = {"name": "CUDA_ERROR_LAUNCH_FAILED", "code": 719}
MEMORY = {"name": "CUDA_ERROR_ECC_UNCORRECTABLE", "code": 214}
KILL = {"name": "SIGKILL"}


def step(seq: int, kind: type[Operation[Any]]) -> Step:
    """Return a message of this type, as the record has it; what it says does not matter."""
    fields: dict[Any, list[Any]] = {
        LaunchKernel: [1, [], [1, 1, 1], [1, 1, 1], [], 0],
        Zeros: [[3], "float32"],
    }
    return step_of([seq, 0, None, [kind.__struct_config__.tag, *fields[kind]], None], b"")


def found(lost: dict[str, Any], *kinds: type[Operation[Any]], executing: int = 0) -> int:
    steps = {seq: step(seq, kind) for seq, kind in enumerate(kinds, 1)}
    pending: dict[int, Reply[Any]] = {seq: Reply(None, None) for seq in steps}
    return culprit_of(InFlight(pending, {}, None), steps, ContextLost("", **lost), executing)


def test_it_is_the_one_that_was_executed_when_its_process_ended() -> None:
    assert found(SEGFAULT, Zeros, Zeros, Zeros, executing=2) == 2
    assert found({"name": "exit status 3"}, Zeros, Zeros, executing=2) == 2
    assert found(SEGFAULT, Zeros, Zeros) == 0
    assert found(SEGFAULT, Zeros, Zeros, executing=7) == 0  # it was answered


def test_who_was_killed_from_outside_has_no_culprit() -> None:
    assert found(KILL, Zeros, LaunchKernel, executing=2) == 0


def test_what_was_alone_is_it() -> None:
    assert found(SEGFAULT, Zeros) == 1
    assert found(MEMORY, Zeros) == 1


def test_a_device_in_error_blames_the_only_kernel_of_the_user() -> None:
    """What was launched last is not what ran: the context does not know how far its device is."""
    assert found(TRAP, Zeros, LaunchKernel, Zeros, executing=3) == 3
    assert found(TRAP, Zeros, LaunchKernel, Zeros) == 2
    assert found(TRAP, LaunchKernel, LaunchKernel) == 0
    assert found(MEMORY, Zeros, LaunchKernel) == 0


@pytest.mark.parametrize("seqs", [(1,), (1, 2)])
def test_a_function_of_the_user_may_be_it_too(seqs: tuple[int, ...]) -> None:
    call = step_of([2, 0, None, [RUN, [], b"", True, None], None], b"")
    steps = {1: step(1, LaunchKernel), 2: call, 3: step(3, Zeros)}
    pending: dict[int, Reply[Any]] = {seq: Reply(None, None) for seq in (*seqs, 3)}
    error = ContextLost("", **TRAP)
    assert culprit_of(InFlight(pending, {}, None), steps, error, 0) == (1 if seqs == (1,) else 0)
