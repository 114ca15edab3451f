"""A request that fails for a reason of its own: a typed error, and the context lives on."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System, array, blas
from accel_lab.compute.events.lifecycle import LibraryRestarted
from accel_lab.compute.message.builtin import Unmap
from accel_lab.errors import (
    DependencyFailed,
    InvalidArgument,
    LibraryError,
    OutOfMemory,
    UserCodeError,
)
from tests.faults.conftest import settle, works

WAIT = 30.0
ONES = np.ones((8, 8), np.float32)


def test_a_library_error_restarts_that_actor_alone(lab: System, cpu: Device) -> None:
    """The context and its buffers live on."""
    a = cpu.put(ONES)
    with pytest.raises(LibraryError):
        lab.inject("library", cpu).result(WAIT)
    assert (cpu.get(blas.gemm(a, a)).result(WAIT) == 8.0).all()
    assert cpu.generation == 1
    restarts = {n.name: n.restarts for n in lab.tree().walk() if n.kind == "library"}
    assert restarts["fault"] == 1
    assert sum(restarts.values()) == 1


@pytest.mark.parametrize("known", [True, False])
def test_out_of_memory_of_a_function_says_what_it_asked_for_and_where(
    nothing_left: None, *, known: bool
) -> None:
    """NumPy's error tells how much; the interpreter's does not."""

    def take(nbytes: int) -> Any:
        return np.empty(nbytes, np.uint8) if known else bytes(nbytes)

    with System("host", recover="stale") as lab, pytest.raises(OutOfMemory) as caught:
        lab.devices[0].run(take, 1 << 50).result(WAIT)
    error = caught.value
    assert error.asked_bytes == (1 << 50 if known else 0)
    assert str(error).startswith("1 PiB were asked for" if known else "more was asked for")
    assert "return np.empty(nbytes, np.uint8) if known else bytes(nbytes)" in str(error)
    assert "none of ours\n" in str(error)
    assert isinstance(error.__cause__, MemoryError)
    assert ("Unable to allocate" in str(error.__cause__)) == known


@pytest.mark.parametrize("told", ["the budget of 3 rows is used up", ""])
def test_a_memory_error_that_a_function_raises_itself_is_the_functions_own(
    nothing_left: None, told: str
) -> None:
    def load() -> None:
        raise MemoryError(told) if told else MemoryError

    with System("host", recover="stale") as lab, pytest.raises(UserCodeError) as caught:
        lab.devices[0].run(load).result(WAIT)
    assert str(caught.value).startswith(f"MemoryError: {told}")
    assert "in load" in str(caught.value)
    assert type(caught.value.__cause__) is MemoryError
    assert str(caught.value.__cause__) == told


def test_out_of_memory_names_what_was_asked_and_who_holds_the_rest(nothing_left: None) -> None:
    """The context resumes, nothing is lost, and memory that is given back can be had."""
    with System("host", recover="stale", memory_bytes=1 << 20, spill=False) as lab:
        (cpu,) = lab.devices
        held = array.zeros(cpu, (700, 1024), dtype="uint8")
        with pytest.raises(OutOfMemory) as caught:
            array.zeros(cpu, (700, 1024), dtype="uint8").result(WAIT)
        assert caught.value.asked_bytes == 700 * 1024
        assert caught.value.free_bytes == (1 << 20) - 700 * 1024
        assert caught.value.owners[0][1] == 700 * 1024
        assert (cpu.get(held).result(WAIT) == 0).all()
        del held
        again = array.zeros(cpu, (700, 1024), dtype="uint8")
        cpu.put(ONES).result(WAIT)
        if again.error is not None:  # the free travelled behind the first try
            again = array.zeros(cpu, (700, 1024), dtype="uint8")
        again.result(WAIT)
        assert cpu.generation == 1


def test_what_depends_on_a_failure_is_never_run_and_names_the_root(nothing_left: None) -> None:
    """DependencyFailed carries the first failure as its cause, however far down."""
    with System("host", recover="stale", memory_bytes=1 << 20) as lab:
        (cpu,) = lab.devices
        big = array.zeros(cpu, (1 << 18,), dtype="float64")
        next_one = blas.scal(big, 2.0)
        last = blas.nrm2(next_one)
        with pytest.raises(DependencyFailed) as caught:
            last.result(WAIT)
        assert isinstance(caught.value.__cause__, OutOfMemory)
        with pytest.raises(OutOfMemory):
            big.result(WAIT)
        after = blas.scal(big, 2.0)  # sent when the failure is known here
        with pytest.raises(DependencyFailed):
            after.result(WAIT)
        lab.check()  # the root was taken above, and the rest follows from it


def test_an_upload_that_finds_no_memory_gives_its_host_memory_back(nothing_left: None) -> None:
    """Also the chunks that were refused because the first failure was already known."""
    with System("host", recover="stale", memory_bytes=1 << 20) as lab:
        (cpu,) = lab.devices
        big = cpu.put(np.ones(1 << 23))
        with pytest.raises((OutOfMemory, DependencyFailed)):
            big.result(WAIT)
        with pytest.raises((OutOfMemory, DependencyFailed)):
            cpu.get(blas.scal(big, 2.0)).result(WAIT)
        assert settle(lambda: lab.arena().blocks == 0)


def test_a_buffer_of_another_device_is_refused_at_the_call(nothing_left: None) -> None:
    """It says how to bring it over."""
    with System("host", 2, recover="stale") as lab:
        one, two = lab.devices
        a, b = one.put(ONES), two.put(ONES)
        with pytest.raises(InvalidArgument, match="put"):
            blas.gemm(a, b)


def test_an_exception_in_user_code_keeps_its_cause_and_its_lines(cpu: Device) -> None:
    """The original is the cause; the text shows where."""

    def broken() -> float:
        return 1 / 0

    with pytest.raises(UserCodeError, match="division by zero") as caught:
        cpu.run(broken).result(WAIT)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "return 1 / 0" in str(caught.value) or "test_failures.py" in str(caught.value)
    assert cpu.generation == 1


def test_a_failure_that_nobody_awaits_reaches_check_once(lab: System, cpu: Device) -> None:
    """It is raised by the next check and by no later one."""

    def broken() -> None:
        raise ValueError("unseen")

    cpu.run(broken)
    cpu.run(int).result(WAIT)
    with pytest.raises(UserCodeError, match="unseen"):
        lab.check()
    lab.check()


def test_what_was_never_made_says_why_though_the_host_could_not_hold_it(cpu: Device) -> None:
    never = array.zeros(cpu, (1 << 50,), "uint8")
    with pytest.raises(OutOfMemory):
        never.result(WAIT)
    with pytest.raises(DependencyFailed, match="OutOfMemory in Zeros"):
        never.get()


def test_what_depends_on_a_failure_says_what_that_was(nothing_left: None) -> None:
    """Whether the notebook knows of it already or the context is to tell."""
    with System("host", memory_bytes=1 << 20, spill=False) as lab:
        (cpu,) = lab.devices
        large = array.zeros(cpu, (1 << 22,), "uint8")
        told = f"OutOfMemory in Zeros #{cpu.last_number}: 4 MiB were asked for and "
        for number in (1, 2):
            with pytest.raises(DependencyFailed, match=re.escape(told)) as caught:
                ((large + number) * 2).get()
            assert isinstance(caught.value.__cause__, OutOfMemory)
            assert OutOfMemory.remedy in caught.value.remedy


def test_an_option_of_the_wrong_type_is_refused_at_the_call(lab: System, cpu: Device) -> None:
    """Nothing is sent, and the context lives."""
    x = cpu.put(ONES)
    anything: Any = cpu
    wrongs: list[tuple[Callable[[], Any], str]] = [
        (lambda: anything.ask(array.Copy(x), timeout_s=-1.5), "timeout_s is a number"),
        (
            lambda: x.std(ddof=1.5),  # type: ignore[arg-type]
            r"Reduce: ddof is of type int, and 1\.5 is of float",
        ),
        (lambda: x.var(ddof=True), "ddof is of type int, and True is of bool"),
        (lambda: anything.run(len, x, pure=1), "Run: pure is of type bool, and 1 is of int"),
        (lambda: anything.run(len, x, timeout_s="5"), "timeout_s is a number of seconds.*'5'"),
        (lambda: cpu.run(len, x, timeout_s=True), "timeout_s is a number of seconds.*True"),
        (lambda: anything.ask(array.Copy(x), timeout_s="5"), "timeout_s is a number of seconds"),
        (lambda: anything.ask(array.Copy(x), timeout_s=-1), "timeout_s is a number of seconds"),
        (lambda: anything.run(len, x, timeout_s=np.ones(3)), "timeout_s is a number of seconds"),
        (lambda: cpu.run(len, x, timeout_s=10**400), "timeout_s is a number of seconds"),
    ]
    for wrong, text in wrongs:
        with pytest.raises(InvalidArgument, match=text):
            wrong()
    assert cpu.run(len, x, timeout_s=np.float64(5)).result(WAIT) == 8
    assert (cpu.generation, works(cpu)) == (1, True)


def test_a_message_that_the_context_cannot_read_fails_alone(lab: System, cpu: Device) -> None:
    """As one that is told: nobody waits for its answer, and nothing looks at its options."""
    cpu.tell(Unmap(5))  # type: ignore[arg-type]
    cpu.ping().result(WAIT)
    with pytest.raises(InvalidArgument, match="Expected `bytes`, got `int`"):
        lab.check()
    assert (cpu.generation, works(cpu)) == (1, True)


def test_an_index_that_only_the_device_can_check_is_refused_as_any_other(
    lab: System, cpu: Device
) -> None:
    """It costs no library actor, however often."""
    x = cpu.put(ONES[0])
    for _ in range(6):
        made = cpu.run(lambda a: a * 2, x, pure=True)
        with pytest.raises(InvalidArgument, match="index 9 is outside axis 0"):
            made[9].get(timeout_s=WAIT)
    assert (cpu.generation, works(cpu)) == (1, True)
    assert not lab.events.history(LibraryRestarted)
