"""What failed functions leave in memory, and that it comes back; on both sides."""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("IPython", reason="IPython comes with the lab extra")

from accel_lab import System
from accel_lab.errors import InvalidArgument, OutOfMemory, UserCodeError
from tests.notebook.ipython import Lab, notebook

BIG = 64 << 20
LIMIT = 1 << 30
OFFER = "gpu.release_frames() gives that back"

# A function that fails with 64 MiB in a variable, which is watched from outside.
FAIL = f"""%%gpu gpu
import gc, sys, weakref
gc.disable()
def fail(keep=False):
    big = np.zeros({BIG}, "uint8")
    sys.watched = weakref.ref(big)
    try:
        1 / 0
    except ZeroDivisionError as error:
        if keep:
            kept = error
    raise ValueError("on purpose")
"""


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with System("host", memory_bytes=LIMIT) as opened:
        yield opened


@pytest.fixture
def lab(system: System) -> Iterator[Lab]:
    with notebook(system) as opened:
        yield opened


def alive() -> bool:
    import sys

    return sys.watched() is not None  # type: ignore[attr-defined]


def notes(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", ()))


def test_a_failed_cell_leaves_nothing_in_the_context(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab(FAIL)
    error = lab.fail("%%gpu gpu\nfail()")
    assert isinstance(error, UserCodeError)
    assert lab.gpu.run(alive).result() is False  # without garbage collection
    assert "release_frames" not in capsys.readouterr().out
    assert lab.gpu.release_frames().nbytes == 0


def test_a_failed_run_leaves_nothing_in_the_context(lab: Lab) -> None:
    lab(FAIL)
    with pytest.raises(UserCodeError, match="on purpose"):
        lab.gpu.run(_call, lab.names["fail"]).result()
    assert lab.gpu.run(alive).result() is False


def _call(function: Any) -> None:
    function()


def test_what_a_cycle_keeps_is_offered_and_comes_back(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab(FAIL)
    error = lab.fail("%%gpu gpu\nfail(keep=True)")
    assert lab.gpu.run(alive).result() is True
    assert notes(error).endswith(f"hold 64 MiB; {OFFER}")
    assert OFFER in capsys.readouterr().out
    released = lab.gpu.release_frames()
    assert abs(released.nbytes - BIG) <= BIG / 100
    assert (released.notebook_bytes, released.context_bytes) == (0, released.nbytes)
    assert repr(released).startswith("64 MiB came back")
    assert lab.gpu.run(alive).result() is False
    assert lab.gpu.release_frames().nbytes == 0


def test_what_a_cell_has_kept_of_an_error_comes_back(lab: Lab) -> None:
    lab(FAIL)
    lab("%%gpu gpu\ntry:\n    fail()\nexcept ValueError as error:\n    mine = error")
    assert lab.gpu.run(alive).result() is True
    row = lab.gpu.resident["%%gpu mine"]
    assert (row.nbytes, lab.gpu.resident.nbytes) == (BIG, BIG)
    assert lab.gpu.release_frames().context_bytes == BIG
    assert lab.gpu.resident.nbytes == 0
    assert lab.gpu.run(str, lab.names["mine"]).result() == "on purpose"


def test_what_names_of_cells_have_is_not_offered(lab: Lab) -> None:
    lab("%%gpu gpu\nhere = np.ones(1000)\nbox = {'w': [np.ones(500)]}\ndef use(x, y):\n    1 / 0\n")
    error = lab.fail("%%gpu gpu\nuse(here, box['w'][0])")
    assert notes(error).startswith("in gpu cell 3, message #")
    assert "hold" not in notes(error)
    assert lab.gpu.release_frames().nbytes == 0
    assert lab.gpu.resident.nbytes == 12_000


def test_garbage_of_a_failed_function_comes_back(lab: Lab) -> None:
    lab(FAIL)
    lab(
        "%%gpu gpu\nclass Loop: pass\n"
        "def loop():\n    one = Loop()\n    one.self, one.big = one, np.zeros(1 << 20)\n    1 / 0"
    )
    error = lab.fail("%%gpu gpu\nloop()")
    assert notes(error).endswith(f"hold 8 MiB; {OFFER}")
    assert lab.gpu.release_frames().context_bytes == 8 << 20


def test_variables_of_the_notebooks_functions_come_back(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab("kept = gpu.put(np.ones(1000))")
    before = lab.gpu.resident.used_bytes
    lab.fail(
        "def train(kept):\n"
        f"    x = gpu.put(np.zeros({BIG // 8}))\n"
        "    pair = [gpu.put(np.ones(1000)), kept]\n"
        "    gpu.run(lambda: 1 / 0).result()\n"
        "train(kept)"
    )
    assert f"hold 64 MiB; {OFFER}" in capsys.readouterr().out
    assert lab.gpu.resident.used_bytes == before + BIG + 8000
    released = lab.gpu.release_frames()
    assert released.notebook_bytes == BIG + 8000
    assert lab.gpu.resident.used_bytes == before
    capsys.readouterr()
    lab("%tb")
    assert "in train(" in capsys.readouterr().out  # its lines are still there


def test_an_error_that_passed_nothing_large_offers_nothing(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab("a = gpu.put(np.ones(1000))\nnested = {'deep': [[a]]}\nb = {'deep': [gpu.put(np.ones(9))]}")
    lab.fail("def f(x, y):\n    z = y['deep']\n    gpu.run(lambda: 1 / 0).result()\nf(a, b)")
    assert "release_frames" not in capsys.readouterr().out
    assert lab.gpu.release_frames().nbytes == 0
    assert lab.gpu.resident.used_bytes == 8072


def test_out_of_memory_offers_what_its_own_frames_hold(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    error = lab.fail(
        "from accel_lab import array\n"
        "def fill():\n"
        f"    x = gpu.put(np.zeros({BIG // 8}))\n"
        "    x.result()\n"
        f"    return array.zeros(gpu, {2 * LIMIT}, 'uint8').result()\n"
        "fill()"
    )
    assert isinstance(error, OutOfMemory)
    assert f"hold 64 MiB; {OFFER}" in capsys.readouterr().out
    assert lab.gpu.release_frames().notebook_bytes == BIG


def test_errors_with_a_name_and_those_behind_them_are_emptied(lab: Lab) -> None:
    lab(
        "def inner():\n    x = gpu.put(np.ones(1000)); raise KeyError('first')\n"
        "def outer():\n"
        "    y = gpu.put(np.ones(500))\n"
        "    try:\n        inner()\n"
        "    except KeyError as error:\n        raise OSError from error\n"
        "try:\n    outer()\nexcept OSError as error:\n    mine = error"
    )
    kept = {supervisor for row in lab.gpu.resident for supervisor in row.kept_by}
    assert kept == {"x in inner(), of mine", "y in outer(), of mine"}
    assert lab.gpu.release_frames().notebook_bytes == 12_000
    assert len(lab.gpu.resident) == 0
    assert repr(lab.names["mine"].__cause__) == "KeyError('first')"


def test_a_generator_that_goes_on_is_left_alone(lab: Lab) -> None:
    lab(
        "def numbers():\n"
        "    x = gpu.put(np.ones(10))\n"
        "    try:\n        1 / 0\n    except ZeroDivisionError as error:\n        yield error\n"
        "    yield x\n"
        "going = numbers()\nmine = next(going)"
    )
    assert lab.gpu.release_frames().nbytes == 0
    lab("x = next(going)")
    np.testing.assert_array_equal(lab.gpu.get(lab.names["x"]).result(), np.ones(10))


def test_looking_at_frames_keeps_nothing(lab: Lab) -> None:
    """A frame keeps the copy of its variables that it gives out, before Python 3.13."""
    lab.fail("def f():\n    x = gpu.put(np.ones(1000))\n    1 / 0\nf()")
    assert len(lab.gpu.resident) == 1
    lab.fail("1 / 0")
    gc.collect()
    assert len(lab.gpu.resident) == 0


def test_a_mistake_at_the_call_is_shown_as_ever(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    error = lab.fail("gpu.resident['nothing']")
    assert isinstance(error, InvalidArgument)
    assert "InvalidArgument: nothing on" in capsys.readouterr().out
