"""What cells print and display, for a notebook that is a plain dict."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from accel_lab.compute.events.lifecycle import OutputPrinted
from accel_lab.compute.output.printing import LIMIT
from tests.faults.conftest import settle
from tests.notebook.cells import Notebook


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
    assert "matplotlib_backend" in notebook.shown[-1]["text/plain"]


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
