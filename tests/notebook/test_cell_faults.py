"""Cells that fail, are stopped, or lose their context."""

import _thread
import threading
import time
from pathlib import Path

import pytest

from accel_lab import System
from accel_lab.compute.requests.reply_pump import ReplyPump
from accel_lab.compute.wire.link import Link
from accel_lab.errors import StaleRef, UserCodeError
from accel_lab.notebook import gpu_cell
from tests.faults.conftest import settle
from tests.notebook.cells import ONES, Notebook, lose


def test_a_cell_that_raises_shows_its_own_line_and_keeps_what_it_had_bound(
    notebook: Notebook,
) -> None:
    with pytest.raises(UserCodeError, match="ZeroDivisionError") as caught:
        notebook("early = 1\n\n1 / 0")
    assert "line 3" in str(caught.value)
    assert "1 / 0" in str(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert notebook.names["early"].get() == 1


def test_names_that_a_failed_cell_has_bound_are_what_they_were_when_it_failed(
    notebook: Notebook,
) -> None:
    notebook("u = xp.zeros(3)\nstep = 0")
    with pytest.raises(UserCodeError, match="ZeroDivisionError"):
        notebook("for step in range(9):\n    u = u + 1\n    display(step)\n    1 / (4 - step)")
    assert notebook.value("u").tolist() == [5.0, 5.0, 5.0]
    assert notebook.names["step"].get() == 4
    with pytest.raises(UserCodeError, match="ZeroDivisionError"):
        notebook("chosen, other = 1, 2\n1 / 0", "--quiet -o chosen")
    assert notebook.names["chosen"].get() == 1
    assert "other" not in notebook.names
    assert [one["text/plain"] for one in notebook.shown] == ["0", "1", "2", "3", "4"]
    lose(notebook)
    assert notebook("u.tolist()") == "[5.0, 5.0, 5.0]"


@pytest.mark.parametrize("where", ["sending", "waiting"])
def test_an_interrupt_before_anybody_waits_ends_the_cell_too(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    send = Link.send

    def interrupted(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    def interrupted_when_sent(link: Link, data: bytes, *, idle: bool) -> bool:
        sent = send(link, data, idle=idle)
        if b"gpu cell" in data:
            interrupted()
        return sent

    if where == "sending":
        monkeypatch.setattr(Link, "send", interrupted_when_sent)
    else:
        monkeypatch.setattr(ReplyPump, "wait", interrupted)
    asked = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        notebook("import time\ntime.sleep(100)")
    assert notebook("'next'") == "'next'"
    assert time.monotonic() - asked < 60


def test_names_that_an_interrupted_cell_has_bound_are_what_they_were(
    notebook: Notebook, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"

    def interrupt() -> None:
        if settle(runs.exists):
            _thread.interrupt_main()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        notebook(f"u = xp.ones(3)\nimport time\nopen({str(runs)!r}, 'w').close()\ntime.sleep(100)")
    interrupting.join()
    assert notebook.value("u").tolist() == [1.0, 1.0, 1.0]


def test_an_interrupt_ends_the_cell_and_leaves_the_context(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook("before = 'here'")
    generation = notebook.gpu.generation
    runs = tmp_path / "runs"

    def interrupt() -> None:
        if settle(runs.exists):
            _thread.interrupt_main()

    interrupting = threading.Thread(target=interrupt)
    started = time.monotonic()
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        notebook(f"import time\nopen({str(runs)!r}, 'w').close()\ntime.sleep(100)")
    assert time.monotonic() - started < 20
    interrupting.join()
    asked = time.monotonic()
    assert notebook("before") == "'here'"
    assert time.monotonic() - asked < 10  # nothing sleeps any more
    assert notebook.gpu.generation == generation


def test_the_exit_of_a_kernel_stays_there(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    from IPython.core.autocall import ZMQExitAutocall

    monkeypatch.delattr("builtins.exit")  # as IPython does while a cell runs
    notebook.names["exit"] = ZMQExitAutocall(notebook.lab)  # type: ignore[no-untyped-call]
    generation = notebook.gpu.generation
    with pytest.raises(UserCodeError) as caught:
        notebook("kept = 1\nexit()")
    assert isinstance(caught.value.__cause__, SystemExit)
    assert (notebook("kept"), notebook.gpu.generation) == ("1", generation)


def test_arrays_come_back_after_a_loss_and_objects_say_that_they_do_not(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.names["a"] = notebook.gpu.put(ONES)
    notebook("b = a + 1\nmodel = {'b': b}")
    notebook("b *= 2")
    with pytest.raises(UserCodeError):
        notebook("b += 1\n1 / 0")
    notebook.lab.flush()
    generation = notebook.gpu.generation
    with pytest.raises(Exception, match="SIGKILL"):
        notebook.lab.inject("kill").result()
    assert settle(lambda: notebook.gpu.generation > generation)
    assert notebook("b.tolist()") == str((5 * ONES).tolist())
    assert "lost its context" in capsys.readouterr().err
    with pytest.raises(StaleRef, match="'model'"):
        notebook.names["model"].get()
    assert "lost with its context" in repr(notebook.names["model"])


def test_a_cell_that_binds_what_was_lost_can_be_run_again(notebook: Notebook) -> None:
    """Though it reads the name, too, below."""
    cell = "import random\nrolled = random.Random(7)\nfirst = rolled.random()\nfirst"
    before = notebook(cell)
    lose(notebook)
    assert notebook(cell) == before
    lose(notebook)
    with pytest.raises(StaleRef, match="rolled"):
        notebook("rolled.random()")


def test_a_cell_that_uses_what_was_lost_before_it_makes_it_says_so(notebook: Notebook) -> None:
    notebook("import random\nrolls = random.Random(7)")
    lose(notebook)
    with pytest.raises(StaleRef, match=r"'rolls', a random.Random, was lost .* run its cell again"):
        notebook("rolls = [rolls.random()]")


def test_what_a_cell_changes_through_an_object_is_not_taken_for_what_it_was(
    notebook: Notebook,
) -> None:
    """The array's own name is not in the cell."""
    notebook("inner = xp.zeros(3)\nholder = {'inner': inner}")
    for _ in range(5):
        notebook("holder['inner'] += 1")
    assert notebook.value("inner").tolist() == [5.0, 5.0, 5.0]
    lose(notebook)
    assert notebook.value("inner").tolist() == [5.0, 5.0, 5.0]


def test_an_array_that_did_not_come_back_is_named(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_cell, "KEPT_BYTES", 80)
    notebook("small, large = xp.ones(10), xp.ones(11)")
    lose(notebook)
    assert notebook("small.sum()") == "np.float64(10.0)"
    with pytest.raises(StaleRef, match=r"'large' was lost .* run its cell again"):
        notebook("large = large + 1")
    with pytest.raises(StaleRef, match=r"'large' was lost .* run its cell again"):
        notebook("large.sum()")
    assert notebook("large = xp.ones(11)\nlarge.sum()") == "np.float64(11.0)"


def test_a_handle_never_finds_what_has_its_name_in_another_life() -> None:
    with System("host") as lab:
        notebook = Notebook(lab)
        notebook("import pathlib\nmodel = pathlib.Path('old')")
        old = notebook.names["model"]
        with pytest.raises(Exception, match="SIGKILL"):
            lab.inject("kill").result()
        lab.ready()
        notebook("model = pathlib.Path('new')")  # the first of its context, as the old one was
        assert notebook.names["model"].get() == Path("new")
        with pytest.raises(StaleRef, match="'model'"):
            old.get()


def test_a_loss_right_after_a_cell_is_noticed_by_the_next(notebook: Notebook) -> None:
    """Also when the notebook hears of both at once."""
    notebook("import pathlib\nfirst = pathlib.Path('here')")
    generation = notebook.gpu.generation
    notebook.lab.inject("kill")
    assert settle(lambda: notebook.gpu.generation > generation)
    notebook("import os\nsecond = os.getcwd()")
    assert notebook.names["second"].get() == str(Path.cwd())
    assert notebook.names["second"].generation == notebook.gpu.generation
    with pytest.raises(StaleRef, match="'first'"):
        notebook.names["first"].get()


def test_plain_data_survives_a_loss(notebook: Notebook, capsys: pytest.CaptureFixture[str]) -> None:
    notebook(
        "step, rate = 3, 0.25\nlosses = [1.0]\nthing = object()\nmore = {'a': (1, b'x', None)}"
    )
    notebook("losses.append(2.0)\ndef scaled(x, by=rate):\n    return by * x")
    before = notebook.names["losses"]
    notebook.gpu.replace()
    assert settle(lambda: notebook.gpu.generation > before.generation)
    assert before.get() == [1.0, 2.0]
    assert "as its context left it" in repr(before)
    assert before[-1] + notebook.names["step"] == 5.0
    assert notebook.gpu.run(sum, before).result() == 3.0
    capsys.readouterr()
    assert notebook("losses.append(3.0)\nscaled(step), losses, more['a']") == (
        "(0.75, [1.0, 2.0, 3.0], (1, b'x', None))"
    )
    said = capsys.readouterr().err
    assert "with it thing;" in said, "the rest came back"
    after = notebook.names["losses"]
    assert after.generation == notebook.gpu.generation
    assert after.get() == [1.0, 2.0, 3.0]


def test_private_names_that_a_loss_has_taken_are_told(
    notebook: Notebook, capfd: pytest.CaptureFixture[str]
) -> None:
    """The notebook has no handles of them; constants and functions are defined again."""
    notebook("_step = 3\ndef _double(x):\n    return 2 * x\n_gone = _double(_step)")
    notebook("for _ in range(3):\n    pass")
    with pytest.raises(UserCodeError):
        notebook("_late = 1\n1 / 0")
    lose(notebook)
    assert notebook("_double(4)") == "8"
    said = capfd.readouterr().err
    assert "cpu0 lost its context, and with it _gone, _late; run the cells again" in said
    assert notebook("_double(_step)") == "6"
    assert "and with it" not in capfd.readouterr().err
