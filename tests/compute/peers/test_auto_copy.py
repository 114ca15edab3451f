"""An operand of another device: refused with what mends that, or copied if one says so."""

import gc
import os
import re
import signal
import time
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

from accel_lab import System, array, blas, jit
from accel_lab.compute.events.lifecycle import CopyInserted
from accel_lab.compute.message.builtin import Run
from accel_lab.errors import AccelError, InvalidArgument
from tests.faults.conftest import pid_of
from tests.interactive import Shell, shell

WAIT = 60.0
A = np.arange(12.0, dtype=np.float32).reshape(3, 4)
ADD = """
__global__ void add(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
"""


@pytest.fixture
def lab() -> Iterator[System]:
    with System("host", devices=2, max_restarts=10) as lab:
        yield lab


@pytest.fixture
def copying(lab: System) -> System:
    lab.auto_copy = True
    return lab


def inserted(lab: System) -> list[tuple[str, str, str, int]]:
    found = lab.events.history(CopyInserted)
    return [(one.source, one.device, one.message, one.nbytes) for one in found]


def test_it_is_refused_with_code_that_works() -> None:
    with shell() as notebook:
        notebook("import numpy as np; from accel_lab import System")
        notebook("lab = System('host', devices=2); here, there = lab.devices")
        notebook("x = here.put(np.arange(3.0)); y = there.put(np.arange(3.0))")
        notebook("x + y")
        put, always = advised(notebook)
        assert put == "y = here.put(y)"
        notebook(put)
        assert notebook("(x + y).get().tolist()") == [0, 2, 4]
        notebook("x + there.put(x) * 2")  # what has no name
        assert isinstance(notebook.error, InvalidArgument)
        assert "lab.auto_copy = True has it copied there" in str(notebook.error)
        notebook(always)
        assert notebook("(x + there.put(x) * 2).get().tolist()") == [0, 3, 6]
        notebook("z = there.put(x); here.run(lambda a: a.fill(7), z)")
        assert str(notebook.error).endswith("copies what is only read; z = here.put(z)")
        notebook("z = here.put(z); here.run(lambda a: a.fill(7), z)")
        assert notebook("z.get().tolist()") == [7, 7, 7]
        notebook("lab.close()")


def advised(notebook: Shell) -> tuple[str, str]:
    """Return both pieces of code that the last error names."""
    assert isinstance(notebook.error, InvalidArgument)
    found = re.search(r": (y = .*) copies it there; (.* = True) has", str(notebook.error))
    assert found is not None, notebook.error
    return found[1], found[2]


def test_a_cell_is_told_how_to_have_it() -> None:
    with shell() as notebook:
        notebook("%load_ext accel_lab")
        notebook("import numpy as np; from accel_lab import System")
        notebook("lab = System('host', devices=2); first, second = lab.devices")
        notebook("y = second.put(np.arange(3.0))")
        notebook("%%gpu first\nz = y + 1")
        assert "y = first.put(y) copies it there" in str(notebook.error)
        notebook("y = first.put(y)")
        assert notebook("%%gpu first\nz = y + 1") is None
        assert notebook("z.get().tolist()") == [1, 2, 3]
        notebook("lab.close()")


def test_operators_messages_and_functions_copy_what_they_read(copying: System) -> None:
    first, second = copying.devices
    x, y = first.put(A), second.put(A)
    np.testing.assert_array_equal((x + y).get(timeout_s=WAIT), A + A)
    product = first.ask(blas.Gemm(x, y, trans_b="t"))
    np.testing.assert_array_equal(product.get(timeout_s=WAIT), A @ A.T)
    np.testing.assert_array_equal(
        array.concatenate([x, y, y]).get(timeout_s=WAIT), np.concatenate([A, A, A])
    )
    total = first.run(lambda a, b: float((a * b).sum()), x, y, pure=True)
    assert total.result(WAIT) == (A * A).sum()
    nbytes = A.nbytes
    assert inserted(copying) == [
        ("cpu1", "cpu0", "Binary", nbytes),
        ("cpu1", "cpu0", "Gemm", nbytes),
        ("cpu1", "cpu0", "Concatenate", nbytes),  # y is named twice, and copied once
        ("cpu1", "cpu0", Run.__name__, nbytes),
    ]
    copying.flush()
    names = [entry.name for entry in copying.journal if entry.device == "cpu0"]
    assert names.count("Receive") == 4
    assert (y + x).device is second, "the first operand says where"


def test_kernels_copy_what_is_const(copying: System) -> None:
    first, second = copying.devices
    kernel = jit.compile(first, ADD, "add")
    mine, theirs, n = first.put(A), second.put(A), A.size
    launches = 40  # enough for what comes again to be sent ready-made
    for _ in range(launches):
        kernel(1, 32, (theirs, mine, n))
        theirs[...] = array.copy(theirs) + 1  # the next launch is to see it
    expected = (1 + launches) * A + sum(range(launches))
    np.testing.assert_array_equal(mine.get(timeout_s=WAIT), expected)
    with pytest.raises(InvalidArgument, match="may write to it"):
        kernel(1, 32, (mine, theirs, n))
    np.testing.assert_array_equal(theirs.get(timeout_s=WAIT), A + launches)
    copying.auto_copy = False
    with pytest.raises(InvalidArgument, match="is not on cpu0"):
        kernel(1, 32, (theirs, mine, n))


def test_what_is_written_is_never_a_copy(copying: System) -> None:
    first, second = copying.devices
    x, y = first.put(A), second.put(A)
    for send in (
        lambda: array.add(x, x, out=y),
        lambda: first.ask(blas.Swap((x[0], y[0]))),
        lambda: first.run(lambda a, b: np.copyto(b, 0 * a), x, y),
        lambda: first.run(lambda a, b: np.copyto(b, 0 * a), x, y, writes=(y,)),
    ):
        with pytest.raises(InvalidArgument, match="may write to it: auto_copy copies what is only"):
            send()
    assert first.run(lambda a, b: a.fill(b[0, 1]), x, y, writes=(x,)).result(WAIT) is None
    np.testing.assert_array_equal(y.get(timeout_s=WAIT), A)
    np.testing.assert_array_equal(x.get(timeout_s=WAIT), np.ones_like(A))
    with pytest.raises(InvalidArgument, match="is not on cpu0"):
        first.get(y)
    assert inserted(copying) == [("cpu1", "cpu0", "Run", A.nbytes)]
    x[1:] = y[1:]
    np.testing.assert_array_equal(x.get(timeout_s=WAIT)[1:], A[1:])


def test_what_is_of_another_system_or_no_array_is_refused_as_ever(copying: System) -> None:
    first, second = copying.devices
    x = first.put(A)
    with System("host") as other:
        y = other.devices[0].put(A)
        with pytest.raises(InvalidArgument, match=r"of another system.*put\("):
            x + y
    with pytest.raises(InvalidArgument, match="of a system that is closed"):
        x + y
    kernel = jit.compile(second, ADD, "add")
    with pytest.raises(InvalidArgument, match="what is no array is not copied: make one there"):
        first.ask(jit.InspectKernel(kernel.ref))
    assert not inserted(copying)


def test_results_of_copies_are_rebuilt_after_a_loss(copying: System) -> None:
    first, second = copying.devices
    x, y = first.put(A), second.put(A)
    both = x + y
    third = both * y
    third.result(WAIT)
    copying.flush()  # the record has the contents of the copies
    for lost in (first, second):
        os.kill(pid_of(copying, lost), signal.SIGKILL)
    np.testing.assert_array_equal(third.get(timeout_s=WAIT), (A + A) * A)
    np.testing.assert_array_equal((both + y).get(timeout_s=WAIT), 3 * A)
    assert both.durability in ("replayable", "checkpointed"), both.durability


def test_a_source_that_is_lost_in_the_middle_is_copied_later(copying: System) -> None:
    first, second = copying.devices
    x, y = first.put(A), second.put(A)
    for ref in (x, y):
        ref.result(WAIT)
    second.run(time.sleep, 60)
    both = x + y  # the copy waits behind that
    assert not both.done
    os.kill(pid_of(copying, second), signal.SIGKILL)
    np.testing.assert_array_equal(both.get(timeout_s=WAIT), A + A)


def test_when_the_target_is_lost_in_the_middle_it_says_so_and_works_on(copying: System) -> None:
    first, second = copying.devices
    x, y = first.put(A), second.put(A)
    for ref in (x, y):
        ref.result(WAIT)
    slow = second.run(time.sleep, 0.5)
    both = x + y
    first.replace()
    with pytest.raises(AccelError):
        both.result(WAIT)
    np.testing.assert_array_equal((x + y).get(timeout_s=WAIT), A + A)
    slow.result(WAIT)


def test_without_recovery_it_says_what_did_not_come() -> None:
    with System("host", devices=2, recover="stale") as lab:
        lab.auto_copy = True
        first, second = lab.devices
        x, y = first.put(A), second.put(A)
        for ref in (x, y):
            ref.result(WAIT)
        second.run(time.sleep, 60)
        both = x + y
        second.replace()
        with pytest.raises(AccelError, match="did not come"):
            both.result(WAIT)
        np.testing.assert_array_equal((x + x).get(timeout_s=WAIT), A + A)


def test_a_system_that_copies_is_closed_and_collected() -> None:
    """What copies must not keep the device, and so its system, open."""
    lab = System("host", devices=2)
    lab.auto_copy = True
    lab.topology.measure(64, rounds=1)
    gone = weakref.ref(lab)
    lab.close()
    del lab
    gc.collect()
    assert gone() is None
