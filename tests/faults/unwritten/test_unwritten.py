"""What a failed message should have written is of no use to what was sent before that is known."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import Device, System, blas, jit
from accel_lab.compute.message.unwritten import Refusal, Unwritten, UnwrittenBuffers
from accel_lab.compute.output import cell_origin
from accel_lab.errors import (
    AccelError,
    Cancelled,
    ContextLost,
    DependencyFailed,
    InvalidArgument,
    UserCodeError,
)
from tests.compute.requests.test_pipeline import Latch
from tests.faults.conftest import settle
from tests.faults.unwritten.conftest import ONES, WAIT, fail, failing_write


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Begin another cell."""

    def begin() -> None:
        monkeypatch.setattr(cell_origin, "_current", cell_origin.Origin(1))

    return begin


def test_what_reads_it_fails_with_the_first_failure(gpu: Device) -> None:
    out = gpu.put(ONES)
    view = out.T
    alias = failing_write(gpu, out)
    readers = [out + 1, alias * 2, view[0], out.sum()]
    overwritten = blas.gemm(gpu.put(ONES), gpu.put(ONES), out=out)
    for each in [*readers, overwritten, overwritten @ overwritten]:
        with pytest.raises(DependencyFailed, match="on purpose") as caught:
            each.result(WAIT)
        assert isinstance(caught.value.__cause__, UserCodeError)


def test_what_was_sent_before_has_what_was_there(gpu: Device) -> None:
    out = gpu.put(ONES)
    before = out + 1
    failing_write(gpu, out)
    np.testing.assert_array_equal(before.get(), ONES + 1)


@pytest.mark.parametrize("how", ["result", "get", "dependent", "check"])
def test_who_was_told_can_use_it_as_it_was(lab: System, gpu: Device, how: str) -> None:
    out = gpu.put(ONES)
    alias = failing_write(gpu, out)
    dependent = out + 1
    gpu.ping().result(WAIT)
    tell = {
        "result": lambda: alias.result(WAIT),
        "get": lambda: alias.get(timeout_s=WAIT),
        "dependent": lambda: dependent.result(WAIT),
        "check": lab.check,
    }[how]
    with pytest.raises(AccelError):
        tell()
    np.testing.assert_array_equal((out + 1).get(), ONES + 1)
    np.testing.assert_array_equal(blas.gemm(out, out, out=gpu.put(ONES)).get(), ONES @ ONES)


def test_while_nobody_is_told_it_stays_of_no_use(gpu: Device) -> None:
    """However long ago the failure came: only then does it not depend on time what is computed."""
    out = gpu.put(ONES)
    alias = failing_write(gpu, out)
    gpu.ping().result(WAIT)
    assert alias.failed
    with pytest.raises(DependencyFailed):
        (out + 1).result(WAIT)


def test_who_was_told_by_its_base_can_use_what_a_view_should_have_written(gpu: Device) -> None:
    base = gpu.put(np.ones((9, 8)))
    failing_write(gpu, base[1:])
    with pytest.raises(DependencyFailed, match="on purpose"):
        (base + 1).result(WAIT)
    np.testing.assert_array_equal((base + 1).get(), np.ones((9, 8)) + 1)


def test_the_next_cell_can_use_it(gpu: Device, cell: Callable[[], None]) -> None:
    """What has failed is said below the first."""
    cell()
    out = gpu.put(ONES)
    failing_write(gpu, out)
    lost = out + 1
    gpu.ping().result(WAIT)
    cell()
    np.testing.assert_array_equal((out + 1).get(), ONES + 1)
    with pytest.raises(DependencyFailed):
        lost.result(WAIT)


def test_one_that_is_refused_here_writes_nothing_either(gpu: Device) -> None:
    """Its operand is known to have failed, so that it is not even sent."""
    never = gpu.run(fail)
    with pytest.raises(UserCodeError):
        never.result(WAIT)
    out = gpu.put(ONES)
    refused = blas.gemm(never, gpu.put(ONES), out=out)
    assert refused.failed
    with pytest.raises(DependencyFailed):
        (out + 1).result(WAIT)
    np.testing.assert_array_equal((out + 1).get(), ONES + 1)


def test_what_is_taken_back_was_never_to_be_written(
    lab: System, gpu: Device, tmp_path: Path
) -> None:
    out = gpu.put(ONES).result(WAIT)
    latch = Latch(gpu, tmp_path / "gate")
    write = blas.axpy(gpu.put(ONES), out, out=out)
    write.cancel()
    after = out + 1
    gpu.run(int)
    # The control channel is beside the wire: let it be first. What it answers now was asked after.
    assert settle(lambda: bool(list(lab.look(memory=True, work=False))))
    latch.release()
    with pytest.raises(Cancelled):
        write.result(WAIT)
    np.testing.assert_array_equal(after.get(), ONES + 1)


KERNEL = """extern "C" __global__ void copy(const double* x, double* y) {
  y[threadIdx.x] = x[threadIdx.x];
}"""


def test_a_kernel_that_does_not_compile_writes_nothing(gpu: Device) -> None:
    x, out = gpu.put(ONES), gpu.put(ONES)
    broken = jit.compile(gpu, "__global__ void copy(double* x) { it does not }", "copy")
    broken(1, 64, (out,))
    after = out + 1
    with pytest.raises(DependencyFailed):
        after.result(WAIT)
    np.testing.assert_array_equal((x + 1).get(), ONES + 1)


def test_what_a_kernel_only_reads_is_as_it_was(gpu: Device) -> None:
    x, out = gpu.put(ONES), gpu.put(ONES.astype("f"))
    copy = jit.compile(gpu, KERNEL, "copy")
    copy(1, 64, (x, out))  # a double* is not for float32
    read, written = x + 1, out + 1
    np.testing.assert_array_equal(read.get(), ONES + 1)
    with pytest.raises(DependencyFailed):
        written.result(WAIT)


def test_a_launch_that_comes_again_is_refused_too(gpu: Device) -> None:
    """Such a one has been made ready, and nothing else of it is looked at."""
    x, out = gpu.put(ONES), gpu.put(ONES)
    copy = jit.compile(gpu, KERNEL, "copy")
    for _ in range(300):
        copy(1, 64, (x, out)).result(WAIT)
    failing_write(gpu, x)
    again = [copy(1, 64, (x, out)) for _ in range(200)]
    for reply in again:
        with pytest.raises(DependencyFailed):
            reply.result(WAIT)
    copy(1, 64, (x, out)).result(WAIT)


def test_a_device_that_was_suspended_refuses_it_too(gpu: Device) -> None:
    out = gpu.put(ONES)
    failing_write(gpu, out)
    gpu.suspend()
    with pytest.raises(DependencyFailed):
        (out + 1).result(WAIT)
    np.testing.assert_array_equal((out + 1).get(), ONES + 1)


def test_a_function_counts_only_if_it_said_what_it_writes(gpu: Device) -> None:
    x, out = gpu.put(ONES), gpu.put(ONES)

    def spoil(x: Any, out: Any) -> None:
        out[:] = x
        raise ValueError("half way")

    gpu.run(spoil, x, out, writes=(out,))
    with pytest.raises(DependencyFailed, match="half way"):
        (out + 1).result(WAIT)
    np.testing.assert_array_equal((x + 1).get(), ONES + 1)


def test_a_long_chain_of_writes_names_the_first_failure(gpu: Device) -> None:
    """And not each the one before it, thousands deep."""
    x, base = gpu.put(ONES), gpu.put(np.ones((9, 8)))
    above, out = base[:8], base[1:]
    first = blas.gemm(above, above, out=out)  # they overlap
    writes = [blas.gemm(x, x, out=out) for _ in range(50)]
    for write in writes:
        with pytest.raises(DependencyFailed) as caught:
            write.result(WAIT)
        assert isinstance(caught.value.__cause__, InvalidArgument)
    with pytest.raises(InvalidArgument):
        first.result(WAIT)


def test_what_a_lost_context_did_not_write_is_withheld_by_the_next(gpu: Device) -> None:
    """What was in flight before and behind it is run again, each as if nothing had happened."""
    out = gpu.put(ONES)
    before = out + 1
    fault = gpu.run(_die, out, writes=(out,))  # not pure: it is not run again
    behind = out + 2
    with pytest.raises(DependencyFailed, match="ContextLost"):
        behind.result(WAIT)
    assert isinstance(fault.error, ContextLost)
    np.testing.assert_array_equal(before.get(), ONES + 1)
    np.testing.assert_array_equal((out + 2).get(), ONES + 2)


def _die(_: Any) -> None:
    import os

    os.kill(os.getpid(), 9)


_die.__module__ = "__main__"


def test_what_was_sent_before_it_failed_is_not_refused_because_it_is_released_later() -> None:
    """A context comes, and what will release it still waits to be sent."""
    withheld, error = UnwrittenBuffers(), ContextLost("on purpose")
    one, two, three = (Refusal(7, -failed, failed) for failed in (11, 12, 21))
    withheld.add(one, Unwritten(error, None))
    assert (withheld.failed_between(0, 10), withheld.failed_between(0, 12)) == ([], [one])
    error.take()
    withheld.released(withheld.known(None), 20, 0)
    assert [withheld.failed_between(0, seq) for seq in (10, 12, 19, 21)] == [[], [one], [one], []]
    assert withheld.failed_between(12, 19) == []  # that was seen to
    assert [withheld.released_between(12, seq) for seq in (19, 21)] == [[], [one]]
    withheld.add(three, Unwritten(error, None))
    withheld.released(withheld.known(None), 30, 25)
    assert [withheld.failed_between(0, seq) for seq in (12, 29, 31)] == [[], [three], []]
    withheld.add(two, Unwritten(ContextLost("another"), None))  # it comes late, and nobody knows
    assert [withheld.failed_between(0, seq) for seq in (12, 13, 31)] == [[], [two], [two]]


def test_of_what_comes_of_one_failure_the_earliest_stands_for_the_others() -> None:
    """Whichever comes first."""
    withheld, why = UnwrittenBuffers(), Unwritten(ContextLost("on purpose"), None)
    early, late, of_another = Refusal(7, 3, 11), Refusal(7, 3, 12), Refusal(7, 4, 13)
    for one in (late, of_another, early):
        assert not withheld.stands(one)
        withheld.add(one, why)
    assert withheld.stands(late)
    assert withheld.failed_between(0, 20) == [of_another, early]


def test_it_is_forgotten_with_its_buffer(gpu: Device) -> None:
    """Else every failure would cost something for ever."""
    withheld = gpu._requests.answers.withheld
    out = gpu.put(ONES)
    view = out.T
    failing_write(gpu, out)
    del out
    gpu.ping().result(WAIT)
    gpu.ping().result(WAIT)
    assert withheld  # the view still has the memory
    with pytest.raises(DependencyFailed):
        (view + 1).result(WAIT)
    failing_write(gpu, gpu.put(ONES))
    failing_write(gpu, view := gpu.put(ONES).T)
    del view
    assert settle(lambda: gpu.ping().result(WAIT) is None and not withheld)
    np.testing.assert_array_equal((gpu.put(ONES) + 1).get(), ONES + 1)
