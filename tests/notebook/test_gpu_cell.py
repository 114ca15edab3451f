"""Cells that run inside a real context, for a notebook that is a plain dict."""

import _thread
import math
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import System, blas
from accel_lab.compute import workspace
from accel_lab.compute.buffer import AccelRef
from accel_lab.compute.device import Device
from accel_lab.compute.events import OutputPrinted
from accel_lab.compute.link import Link
from accel_lab.compute.printing import LIMIT
from accel_lab.compute.requests import Requests
from accel_lab.errors import ContextLost, InvalidArgument, StaleRef, UserCodeError
from accel_lab.notebook import gpu_cell
from accel_lab.notebook.captures import CAPTURE_BYTES
from accel_lab.notebook.gpu_cell import GpuCells
from accel_lab.notebook.names import used_names
from accel_lab.notebook.object_ref import ObjectRef
from tests.faults.conftest import settle

ONES = np.ones((3, 3))


class Notebook:
    """A namespace, and what its cells have shown."""

    def __init__(self, lab: System) -> None:
        self.names: dict[str, Any] = {"np": np}
        self.shown: list[dict[str, Any]] = []
        self.lab = lab
        self.gpu: Device = lab.devices[0]
        self._cells = GpuCells(
            self.names,
            lambda name: lab.device(0 if name is None else name),
            lambda bundle: self.shown.append(bundle[0]),
        )

    def __call__(self, source: str, line: str = "") -> Any:
        """Run a cell; return what its last line shows."""
        before = len(self.shown)
        self._cells.run(line, source)
        return self.shown[-1]["text/plain"] if len(self.shown) > before else None

    def value(self, name: str) -> Any:
        return self.gpu.get(self.names[name]).result()


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", max_restarts=20) as lab:
        yield lab


@pytest.fixture
def notebook(lab: System) -> Notebook:
    return Notebook(lab)


def test_names_go_in_and_come_back(notebook: Notebook) -> None:
    a = notebook.names["a"] = notebook.gpu.put(ONES)
    notebook.names["k"] = 3
    notebook("b = a * k\nlabel = 'three'")
    b, label = notebook.names["b"], notebook.names["label"]
    assert isinstance(b, AccelRef)
    assert (b.shape, b.dtype) == ((3, 3), "float64")
    np.testing.assert_array_equal(notebook.value("b"), 3 * ONES)
    assert isinstance(label, ObjectRef)
    assert (label.type, label.get()) == ("str", "three")
    assert "'three'" in repr(label)
    assert notebook.names["a"] is a


def test_an_array_in_a_cell_is_the_buffer_itself(notebook: Notebook) -> None:
    a = notebook.names["a"] = notebook.gpu.put(ONES)
    notebook("a += 1")
    np.testing.assert_array_equal(notebook.gpu.get(a).result(), 2 * ONES)
    blas.axpy(a, a, out=a).result()  # 2 + 2, by another library
    assert notebook("float(a.sum())") == "36.0"


def test_xp_is_the_module_of_the_devices_arrays(notebook: Notebook) -> None:
    assert notebook("xp.__name__") == "'numpy'"


def test_a_cell_after_another_knows_its_names(notebook: Notebook) -> None:
    notebook("model = {'w': np.full(4, 2.0)}\ndef twice(x):\n    return 2 * x")
    assert isinstance(notebook.names["model"], ObjectRef)
    assert notebook.names["model"].nbytes == 32
    assert notebook("twice(model['w']).tolist()") == "[4.0, 4.0, 4.0, 4.0]"


def test_the_notebooks_own_functions_and_what_they_use_go_in(notebook: Notebook) -> None:
    scale = 4
    inner = notebook.gpu.put(ONES)

    def scaled(x: Any) -> Any:
        return scale * x + inner

    notebook.names |= {"scaled": scaled, "math": math}
    assert notebook("scaled(np.zeros((3, 3))).sum() + math.floor(1.5)") == "np.float64(10.0)"


def test_an_object_is_described_as_it_describes_itself(notebook: Notebook) -> None:
    values: list[Any] = [
        [[1, (2,)], {"a": {3}}, []],
        list(range(500)),
        ({}, set(), "x" * 300),
    ]
    for value in values:
        notebook(f"thing = {value!r}")
        text = notebook.names["thing"]._resident.text
        assert text.removesuffix("…") == repr(value)[: len(text.removesuffix("…"))]
        assert len(text) == min(len(repr(value)), 200)
    notebook("loop = []\nloop.append(loop)")
    assert "..." in notebook.names["loop"]._resident.text


def test_items_that_are_not_shown_are_not_asked_how_they_look(notebook: Notebook) -> None:
    """As a tensor on a card has to be fetched for that."""
    notebook(
        "class Costly:\n"
        "    asked = 0\n"
        "    def __repr__(self):\n"
        "        Costly.asked += 1\n"
        "        return 'costly ' * 9\n"
        "many = {n: [Costly() for _ in range(100)] for n in range(100)}"
    )
    assert int(notebook("Costly.asked")) < 9


def test_an_object_is_an_operand_of_run(notebook: Notebook) -> None:
    notebook("table = {'x': 5}")
    assert notebook.gpu.run(lambda t: t["x"] + 1, notebook.names["table"]).result() == 6


def test_a_decorated_function_runs_in_the_context(notebook: Notebook) -> None:
    @notebook.gpu.function(pure=True)
    def scaled(x: Any, *, by: float) -> Any:
        """Scale."""
        return x * by

    a = notebook.gpu.put(ONES)
    answer = scaled(a, by=3.0)
    assert isinstance(answer, AccelRef)
    np.testing.assert_array_equal(notebook.gpu.get(answer).result(), 3 * ONES)
    assert answer.durability == "replayable"
    assert scaled.__doc__ == "Scale."
    assert scaled.__wrapped__(2, by=2) == 4  # type: ignore[attr-defined]


def test_a_function_is_decorated_without_options_too(notebook: Notebook) -> None:
    @notebook.gpu.function
    def twice(x: Any) -> Any:
        return 2 * x

    assert twice(21).result() == 42
    assert twice.__wrapped__(1) == 2  # type: ignore[attr-defined]


def test_a_name_that_hides_a_built_in_one_goes_in(notebook: Notebook) -> None:
    notebook.names |= {"input": notebook.gpu.put(ONES), "max": 3}
    assert notebook("float(input.sum()) + max") == "12.0"


def test_a_parameter_is_not_the_notebooks_name(notebook: Notebook) -> None:
    """However large what the notebook calls so, and though a fault took it."""
    notebook.names["table"] = b"0" * (CAPTURE_BYTES + 1)
    notebook("row = 'lost'")
    lose(notebook)
    notebook("def first(table, row=0):\n    return table[row]")
    assert notebook("first('abc')") == "'a'"


def test_what_is_bound_anew_goes_in_again(notebook: Notebook) -> None:
    notebook.names["n"] = 1
    notebook("m = n + 1")
    notebook.names["n"] = 10
    assert notebook("n") == "10"
    notebook.names["m"] = 7  # no longer the handle
    assert notebook("m") == "7"


def test_a_name_that_a_cell_deletes_goes_from_the_notebook(notebook: Notebook) -> None:
    notebook("x = 1\ny = 2")
    notebook("del x")
    assert "x" not in notebook.names
    assert notebook.names["y"].get() == 2


def test_an_object_that_was_replaced_or_dropped_says_so(notebook: Notebook) -> None:
    notebook("x = 'old'\ny = 'kept'")
    old, kept = notebook.names["x"], notebook.names["y"]
    notebook("x = 'new'")
    with pytest.raises(StaleRef, match="'x' was deleted, bound anew"):
        old.get()
    assert notebook.names["x"].get() == "new"
    kept.drop()
    with pytest.raises(StaleRef, match="'y' was deleted"):
        kept.get()


def test_only_what_is_asked_for_comes_back(notebook: Notebook) -> None:
    notebook("u = 1\nv = 2", "-o v")
    assert "u" not in notebook.names
    assert notebook.names["v"].get() == 2
    with pytest.raises(InvalidArgument, match="has not bound w"):
        notebook("v = 3", "-o w")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("--loud", "'--loud' is not understood"),
        ("cpu0 cpu1", "'cpu1' is not understood"),
        ("-o", "-o takes names"),
        ("cpu9", "'cpu9' is no device"),
    ],
)
def test_options_that_do_not_fit_are_refused(notebook: Notebook, line: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match=why):
        notebook("1", line)


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
        notebook(
            "for step in range(9):\n    u = u + 1\n    display(step)\n    1 / (4 - step)", "--quiet"
        )
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
        monkeypatch.setattr(Requests, "wait", interrupted)
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


def test_two_names_of_one_array_are_one_handle_and_come_back(notebook: Notebook) -> None:
    notebook("u = xp.zeros(4)\nfor _ in range(3):\n    new = u + 1\n    u = new")
    assert notebook.names["u"] is notebook.names["new"]
    notebook("again = u")
    assert notebook.names["again"] is notebook.names["u"]
    notebook.names["given"] = notebook.gpu.put(ONES)
    notebook("taken = given")
    assert notebook.names["taken"] is notebook.names["given"]
    notebook.lab.flush()
    assert notebook.names["u"].durability == "checkpointed"
    lose(notebook)
    assert notebook("u is new, again.tolist()") == "(True, [3.0, 3.0, 3.0, 3.0])"
    assert notebook("u = u + 1\nu.tolist()") == "[4.0, 4.0, 4.0, 4.0]"
    assert notebook.value("new").tolist() == [3.0, 3.0, 3.0, 3.0]


def test_another_name_is_a_handle_where_the_first_was_not_asked_for(notebook: Notebook) -> None:
    notebook("hidden = xp.ones(2)", "-o hidden")
    del notebook.names["hidden"]
    notebook("secret = xp.arange(2.0)\nseen = secret", "-o seen")
    assert "secret" not in notebook.names
    assert notebook.value("seen").tolist() == [0.0, 1.0]
    notebook("found = secret")
    assert notebook.value("found").tolist() == [0.0, 1.0]
    notebook("found = xp.ones(1)", "-o found")
    notebook("found = xp.zeros(1)\nother = found", "-o other")
    assert notebook.value("found").tolist() == [1.0]
    assert notebook.value("other").tolist() == [0.0]
    assert notebook("found.tolist()") == "[1.0]"


def test_a_function_of_the_notebook_finds_what_a_cell_has_bound(notebook: Notebook) -> None:
    """As one that says `cp.`, where a cell says `cp = xp`."""
    namespace = notebook.names
    source = "def inner(x):\n    return cp.sum(x)\ndef total(x):\n    return inner(x) + offset"
    exec(source, namespace)  # noqa: S102 - as IPython does
    notebook("cp, offset = xp, 0.5")
    assert notebook("float(total(xp.ones(3)))") == "3.5"
    namespace["offset"] = 10  # the notebook's own goes first
    assert notebook("float(total(xp.ones(3)))") == "13.0"


def test_an_object_answers_as_what_it_stands_for(notebook: Notebook) -> None:
    notebook("loss = 0.0625\nhistory = [3.0, 2.0, xp.ones(2)]\nbest = {'k': 1}\nnothing = []")
    loss, history, best, nothing = (
        notebook.names[name] for name in ("loss", "history", "best", "nothing")
    )
    assert (float(loss), int(loss), complex(loss), f"{loss:.1e}") == (0.0625, 0, 0.0625, "6.2e-02")
    assert loss < 1
    assert loss <= 0.0625
    assert not loss > 1
    assert loss >= 0
    assert (len(history), history[0], list(history)[1], 2.0 in history[:2]) == (3, 3.0, 2.0, True)
    assert isinstance(history[-1], AccelRef)
    assert best["k"] == 1
    assert "k" in best
    assert bool(best)
    assert not nothing
    notebook("count, losses = 2, [0.5, 0.25]")
    assert "abc"[notebook.names["count"]] == "c"
    np.testing.assert_array_equal(np.asarray(notebook.names["losses"]), [0.5, 0.25])
    assert (f"{loss}", str(loss)) == ("0.0625", "0.0625")
    assert "loss" in f"{loss!r}"
    assert "history" in f"{history}"
    for wrong, error in ((lambda: len(loss), TypeError), (lambda: best["no"], KeyError)):
        with pytest.raises(error):
            wrong()


def test_a_cell_that_is_not_python_is_refused_before_it_is_sent(notebook: Notebook) -> None:
    with pytest.raises(InvalidArgument, match=r"not plain Python.*line 2: !ls") as caught:
        notebook("x = 1\n!ls")
    assert "Correct that line" in caught.value.remedy


def test_captures_that_cannot_go_in_are_refused_by_name(notebook: Notebook) -> None:
    notebook.names["lock"] = threading.Lock()
    with pytest.raises(InvalidArgument, match="lock, a lock, cannot go into the cell"):
        notebook("lock")
    notebook.names["big"] = np.zeros(CAPTURE_BYTES + 1, np.uint8)
    with pytest.raises(InvalidArgument, match=r"big = gpu.put\(big\)"):
        notebook("big.sum()")
    names = {"big": notebook.names["big"], "small": np.ones(2)}
    exec("def total():\n    return big.sum() + small.sum()", names)  # noqa: S102 - as a cell of the notebook does
    notebook.names["total"] = names["total"]
    with pytest.raises(InvalidArgument, match=r"total, with big .* big = gpu.put\(big\)"):
        notebook("total()")
    notebook.names |= {"table": {"key": "x" * CAPTURE_BYTES}}  # `put` takes none
    with pytest.raises(InvalidArgument, match=r"; make table in a %%gpu cell$"):
        notebook("table['key']")


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


def test_output_appears_while_the_cell_runs(notebook: Notebook, tmp_path: Path) -> None:
    mark = notebook.lab.events.published
    gate = tmp_path / "gate"
    wait = f"while not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)"
    cell = threading.Thread(target=notebook, args=(f"import os, time\nprint('now')\n{wait}",))
    cell.start()
    try:
        notebook.lab.events.wait_for(OutputPrinted, 20, since=mark)
        assert cell.is_alive()
    finally:
        gate.touch()
        cell.join()


def test_a_flood_is_bounded_and_counted(notebook: Notebook) -> None:
    mark = notebook.lab.events.published
    started = time.monotonic()
    notebook("for _ in range(100_000):\n    print('x' * 1023)")  # 100 MB
    assert time.monotonic() - started < 60
    dropped = f"accel_lab: {100_000 * 1024 - LIMIT:,} more characters were printed"
    seen = notebook.lab.events.wait_for(
        lambda event: isinstance(event, OutputPrinted) and dropped in event.text, since=mark
    )
    assert isinstance(seen, OutputPrinted)
    printed = sum(len(e.text) for e in notebook.lab.events.history(OutputPrinted))
    assert printed < 2 * LIMIT
    notebook("print('again')")  # the next cell has room
    assert settle(
        lambda: any("again" in e.text for e in notebook.lab.events.history(OutputPrinted))
    )


@pytest.mark.parametrize(
    ("source", "stream", "text"),
    [
        (
            "import logging\nlogging.getLogger('mine').warning('%s', 'log' + 'ged')",
            "stderr",
            "logged",
        ),
        ("import warnings\nwarnings.warn('war' + 'ned')", "stderr", "UserWarning: warned"),
        ("import sys\nprint('er' + 'red', file=sys.stderr)", "stderr", "erred"),
        ("import os\nos.system('echo echo''ed')", "stdout", "echoed"),
        (
            "import ctypes\nc = ctypes.CDLL(None)\nc.puts(b'pu' b'tted')\nc.fflush(None)",
            "stdout",
            "putted",
        ),
    ],
)
def test_output_of_every_kind_comes_to_the_cell(
    notebook: Notebook, capsys: pytest.CaptureFixture[str], source: str, stream: str, text: str
) -> None:
    seen = ""

    def is_there() -> bool:
        nonlocal seen
        out, err = capsys.readouterr()
        seen += out if stream == "stdout" else err
        return text in seen

    notebook(source)
    assert settle(is_there), seen


@pytest.mark.parametrize("module", ["tqdm", "tqdm.auto"])
def test_a_progress_bar_moves_while_the_cell_runs(
    notebook: Notebook, tmp_path: Path, module: str
) -> None:
    pytest.importorskip("tqdm")
    mark = notebook.lab.events.published
    gate = tmp_path / "gate"
    source = (
        f"import os, time\nfrom {module} import tqdm\n"
        "for n in tqdm(range(4), mininterval=0):\n"
        f"    while n == 2 and not os.path.exists({str(gate)!r}):\n        time.sleep(0.01)"
    )

    def has(part: str) -> Any:
        return lambda event: isinstance(event, OutputPrinted) and part in event.text

    cell = threading.Thread(target=notebook, args=(source,))
    cell.start()
    try:
        notebook.lab.events.wait_for(has(" 2/4 "), 20, since=mark)
        assert cell.is_alive()
    finally:
        gate.touch()
        cell.join()
    notebook.lab.events.wait_for(has(" 4/4 "), 20, since=mark)


def test_a_breakpoint_tells_what_is_there(notebook: Notebook) -> None:
    mark = notebook.lab.events.published
    notebook("def inner(depth):\n    half = depth / 2\n    breakpoint()\ninner(3)")
    notebook.lab.events.wait_for(OutputPrinted, since=mark)

    def said() -> str:
        return "".join(e.text for e in notebook.lab.events.history(OutputPrinted)[-100:])

    for text in ("line 3:", "depth = 3", "half = 1.5"):
        assert settle(lambda text=text: text in said()), said()  # type: ignore[misc]


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


def lose(notebook: Notebook) -> None:
    notebook.lab.flush()
    with pytest.raises(ContextLost):
        notebook.lab.inject("kill").result()
    notebook.lab.ready()


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


def test_a_number_that_a_cell_computes_is_a_handle(notebook: Notebook) -> None:
    notebook("total = xp.arange(5.0).sum()")
    assert isinstance(notebook.names["total"], AccelRef)
    assert float(notebook.names["total"]) == 10.0
    assert notebook("float(total) + 1") == "11.0"


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


def test_a_hundred_edits_of_a_module_are_all_seen(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a pause between them, so that file times may repeat; the notebook left bytecode."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "edited_first.py").write_text("value = -1\n")
    (tmp_path / "edited.py").write_text(
        "from edited_first import value\ndef get():\n    return value\n"
    )
    import edited  # type: ignore[import-not-found]

    notebook.names |= {"edited": edited, "get": edited.get}
    seen = []
    for n in range(100):
        (tmp_path / "edited_first.py").write_text(f"value = {n:2}\n")
        seen.append((notebook("edited.get()"), notebook("get()")))
    assert seen == [(str(n), str(n)) for n in range(100)]
    for name in ("edited", "edited_first"):
        sys.modules.pop(name)


def test_an_instance_that_is_there_has_the_methods_of_its_module_as_it_is_now(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a class with a base, and inside a list."""
    monkeypatch.syspath_prepend(str(tmp_path))
    source = (
        "class Base:\n    def __call__(self):\n        return self.w\n"
        "class Model(Base):\n    def __init__(self):\n        self.w = 1\n"
        "    def __call__(self):\n        return super().__call__()"
    )
    (tmp_path / "modelled.py").write_text(source + "\n")
    notebook("from modelled import Model\nmodel = Model()\nboth = [model, Model()]")
    (tmp_path / "modelled.py").write_text(source + " + 10\n")
    assert notebook("model(), [one() for one in both]") == "(11, [11, 11])"
    assert notebook("model.w, isinstance(model, Model)") == "(1, True)"


def test_what_pip_has_installed_is_not_looked_at_again(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `pip install --target` does it: hundreds of files would be read before each cell."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "settled-1.0.dist-info").mkdir()
    (tmp_path / "settled.py").write_text("value = 1\n")
    assert notebook("import settled\nsettled.value") == "1"
    (tmp_path / "settled.py").write_text("value = 22\n")
    assert notebook("settled.value") == "1"


def test_a_module_that_is_broken_says_so_until_it_is_mended(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    source = tmp_path / "breakable.py"
    source.write_text("value = 1\n")
    import breakable  # type: ignore[import-not-found]

    notebook.names["breakable"] = breakable
    assert notebook("breakable.value") == "1"
    source.write_text("value = \n")
    for _ in range(2):
        with pytest.raises(UserCodeError, match="SyntaxError"):
            notebook("breakable.value")
    source.write_text("value = 22\n")
    assert notebook("breakable.value") == "22"
    sys.modules.pop("breakable")


def test_the_cell_works_in_the_notebooks_folder_and_environment(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_SETTING", "seven")
    assert notebook("import os\nos.getcwd()") == repr(str(tmp_path))
    assert notebook("os.environ['MY_SETTING']") == "'seven'"
    monkeypatch.delenv("MY_SETTING")
    assert notebook("'MY_SETTING' in os.environ") == "False"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("y = x + len(z)", ["len", "x", "z"]),
        ("x += 1", ["x"]),
        ("def f(a):\n    return a + b\nf(c)", ["b", "c", "f"]),
        ("def f(a=d):\n    n = a\n    return [n for i in m]", ["d", "m"]),
        ("def f():\n    def g():\n        return n\n    n = b", ["b"]),
        ("def f():\n    global n\n    n += 1", ["n"]),
        ("class C(B):\n    size = 3\n    def get(self):\n        return self.size * k", ["B", "k"]),
        ("[i for i in n]\nk = lambda i: i + z", ["n", "z"]),
        ("{k: v + z for k, v in m.items() if k}\n[i for i in n]\ni", ["i", "m", "n", "z"]),
        ("i = 3\n[[i for i in j] for j in n if o]", ["n", "o"]),
        ("[i := n for n in m]\ni", ["i", "m"]),
        ("for i in n: print(i)", ["i", "n", "print"]),
        ("del gone", ["gone"]),
        ("import os\nos.path", ["os"]),
    ],
)
def test_names_that_a_cell_uses(source: str, names: list[str]) -> None:
    assert used_names(source) == names


def test_what_a_cell_changes_of_the_notebooks_is_changed_there(notebook: Notebook) -> None:
    losses: list[float] = []
    options, seen, weights = {"n": 0}, {1}, np.zeros(3)
    same = losses
    notebook.names |= {"losses": losses, "options": options, "seen": seen, "weights": weights}
    notebook(
        "for k in range(3):\n    losses.append(k / 2)\noptions['n'] += 1\nseen.add(2)\nweights += 1"
    )
    assert (losses, options, seen) == ([0.0, 0.5, 1.0], {"n": 1}, {1, 2})
    assert notebook.names["losses"] is same, "it is the list that others have, too"
    np.testing.assert_array_equal(weights, np.ones(3))
    with pytest.raises(UserCodeError):
        notebook("losses.append(9)\n1 / 0")
    assert losses[-1] == 9, "as far as the cell got, as in one of the notebook's own"
    notebook("weights *= 3\nweights.shape = (3, 1)")
    np.testing.assert_array_equal(weights, np.full(3, 3.0), "its shape is the notebook's")
    notebook("losses.append(8)\noptions['n'] += 1", "-o options")
    assert (losses[-1], options) == (9, {"n": 2}), "the others stay as they are"
    notebook("losses = [7]")
    assert losses[-1] == 9
    assert isinstance(notebook.names["losses"], ObjectRef)


def test_what_a_timed_cell_has_changed_is_not_what_the_next_has(notebook: Notebook) -> None:
    """Not even of one that is stopped before it begins."""
    losses = notebook.names["losses"] = [1]
    notebook._cells.time("-n 1 -r 1", "losses.append(2)")
    assert notebook.gpu.run(workspace.outcome, notebook._cells._name).result().returned == {}
    assert losses == [1]
    notebook("losses.append(3)")
    assert losses == [1, 3]


def test_a_list_of_the_notebooks_that_gets_an_array_stays_with_the_arrays(
    notebook: Notebook,
) -> None:
    kept: list[Any] = [1]
    notebook.names |= {"kept": kept, "also": [2]}
    notebook("kept.append(np.ones(2))\nalso[0]")
    assert (kept, notebook.names["also"]) == ([1], [2])
    assert isinstance(notebook.names["kept"], ObjectRef)
    assert notebook("len(kept), kept[1].sum()") == "(2, np.float64(2.0))"


def test_a_handle_tells_what_its_object_is_now(notebook: Notebook) -> None:
    notebook("losses = []\nrate = 0.5")
    losses = notebook.names["losses"]
    notebook("losses += [1, 2]")
    assert notebook.names["losses"] is losses
    assert "[1, 2]" in repr(losses)
    losses.get().append(3)
    assert losses.get() == [1, 2], "that was a copy"
    rate = notebook.names["rate"]
    assert (rate + 1, 1 - rate, rate * 4, 2 / rate, rate**2) == (1.5, 0.5, 2.0, 4.0, 0.25)
    assert (-rate, abs(rate), round(rate), 7 // rate, 7.25 % rate) == (-0.5, 0.5, 0, 14.0, 0.25)
    three = [3]
    assert losses + three == [1, 2, 3]
    assert three + losses == [3, 1, 2]


def test_what_never_changes_is_equal_to_what_it_stands_for(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.names["path"] = str(tmp_path / "file")
    notebook(
        "mode, none, acc, yes, n = 'train', None, 0.5, True, 3\nfile = path + '.txt'\n"
        "long = 'x' * 100_000\nlosses = [1.0]\nclass Model: pass\nmodel = Model()"
    )
    here = notebook.names
    mode, none, acc, yes, n = (here[name] for name in ("mode", "none", "acc", "yes", "n"))
    for handle, value in {mode: "train", none: None, acc: 0.5, yes: True, n: 3}.items():
        assert isinstance(handle, ObjectRef)
        assert handle == value
        assert value == handle
        assert not handle != value  # noqa: SIM202 - the operator is the point
        assert handle != "other"
        assert handle in (0, value)
        assert dict.fromkeys([value], 1)[handle] == 1  # type: ignore[index]
        assert (f"{handle}", f"{handle!s:>9}") == (f"{value}", f"{value!s:>9}")
        assert bool(handle) is bool(value)
        assert repr(handle).startswith("<ObjectRef ")
    assert ("%s %d %.1f" % (mode, n, acc), "train" in mode) == ("train 3 0.5", True)  # noqa: UP031
    assert mode < "u"
    assert mode != here["file"]
    assert list(range(4))[n] == 3
    with open(here["file"], "w") as written:  # noqa: PTH123 - the built-in function is the point
        written.write(mode + "!")
    assert Path(here["file"]).read_text() == "train!"
    assert here["long"] == "x" * 100_000
    assert here["losses"] != [1.0]
    assert here["model"] == here["model"]
    assert len({here["model"], here["losses"]}) == 2
    with pytest.raises(TypeError):
        open(here["losses"])  # noqa: PTH123, SIM115
    notebook.gpu.replace()
    assert settle(lambda: notebook.gpu.generation > mode.generation)
    assert (mode == "train", hash(mode) == hash("train"), str(none)) == (True, True, "None")


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


@pytest.mark.parametrize(
    "end", ["", "\nplt.show()", "\nplt.show(block=False)\nprint(plt.get_fignums())"]
)
def test_a_figure_is_shown(notebook: Notebook, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """Also where the notebook's process has its own way to draw."""
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook("import matplotlib.pyplot as plt\nplt.plot([1, 2]);" + end)
    (shown,) = notebook.shown
    assert shown["image/png"].startswith(b"\x89PNG")
    assert "Figure" in shown["text/plain"]
    notebook("import os\nos.environ['MPLBACKEND']")
    assert "figure_backend" in notebook.shown[-1]["text/plain"]


@pytest.mark.parametrize("end", ["fig", "display(fig)", "display(fig, fig.axes);", "[fig];"])
def test_a_figure_that_is_shown_by_name_is_shown_once(notebook: Notebook, end: str) -> None:
    notebook("import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2])\n" + end)
    drawn = [one["image/png"] for one in notebook.shown if "image/png" in one]
    assert len(drawn) == 1
    notebook("fig")
    assert notebook.shown[-1]["image/png"] == drawn[0]
    notebook("ax.plot([2, 1])\ndisplay(fig)\nax.set_title('more');")
    assert drawn[0] != notebook.shown[-1]["image/png"]


def test_a_figure_that_changes_after_it_was_displayed_is_shown_again(notebook: Notebook) -> None:
    notebook(
        "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\ndisplay(fig)\nax.plot([1, 2]);"
    )
    first, second = (one["image/png"] for one in notebook.shown)
    assert first != second


def test_display_of_ipythons_shows_under_the_cell(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is imported, and also in a module of the user's."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "bold.py").write_text("from IPython.display import HTML, display as shown\n")
    html = {"text/html": "<b>1</b>", "text/plain": "<IPython.core.display.HTML object>"}
    notebook("from IPython.display import display, HTML\ndisplay(HTML('<b>1</b>'))")
    notebook("import bold, IPython\nbold.shown(bold.HTML('<b>1</b>'))")
    notebook("IPython.display.display({'text/plain': '1'}, raw=True)")
    assert notebook.shown == [html, html, {"text/plain": "1"}]
    notebook(
        "class Own:\n    def _ipython_display_(self):\n        display(HTML('<b>1</b>'))\nOwn()"
    )
    assert notebook.shown[3:] == [html]
