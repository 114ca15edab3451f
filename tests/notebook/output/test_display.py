"""What `%%gpu` cells display, as a front end gets it from a real kernel."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from tests.kernel import Cell, kernel, ran, run

OPEN = """
%load_ext accel_lab
from accel_lab import System
lab = System("host").ready()
gpu = lab.devices[0]
"""
Seen = list[tuple[str, str]]


@pytest.fixture(scope="module")
def client() -> Iterator[BlockingKernelClient]:
    with kernel(OPEN) as client:
        yield client


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """A file for which a cell waits; it is there when the test has ended, however it did."""
    path = tmp_path / "gate"
    yield path
    path.touch()


def seen(cell: Cell) -> Seen:
    """Return what a front end makes of it: text that was printed, and texts of displays."""
    found: Seen = []
    for kind, content in cell.outputs:
        if kind == "stream":
            before = found.pop()[1] if found and found[-1][0] == kind else ""
            found.append((kind, before + content["text"]))
        else:
            found.append((kind, str(content.get("data", {}).get("text/plain", ""))))
    return found


def contents(cell: Cell, kind: str) -> list[dict[str, Any]]:
    return [content for one, content in cell.outputs if one == kind]


def waiting(path: Path) -> str:
    """Return the line that waits for a file."""
    return f"import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\n"


def test_what_is_displayed_appears_while_the_cell_runs_in_order_with_what_is_printed(
    client: BlockingKernelClient, gate: Path
) -> None:
    source = "for k in range(3):\n    print('before', k)\n    display(k)\n    print('after', k)\n"
    cell = Cell(client, f"%%gpu\n{source}{waiting(gate)}display('last')\nprint('end')")
    cell.until("after 2\n")
    assert not cell.ended
    running: Seen = [
        ("stream", "before 0\n"),
        ("display_data", "0"),
        ("stream", "after 0\nbefore 1\n"),
        ("display_data", "1"),
        ("stream", "after 1\nbefore 2\n"),
        ("display_data", "2"),
        ("stream", "after 2\n"),
    ]
    assert seen(cell) == running
    gate.touch()
    cell.until()
    # Below all that stands what the cell cost.
    running[-1:] = [("stream", "after 2\n"), ("display_data", "'last'"), ("stream", "end\n")]
    assert seen(cell)[:-1] == running


@pytest.mark.parametrize("show", ["plt.show()", "display(plt.gcf())"])
def test_a_figure_of_a_loop_appears_while_the_cell_runs(
    client: BlockingKernelClient, gate: Path, show: str
) -> None:
    source = f"import matplotlib.pyplot as plt\nfor k in range(3):\n    plt.plot([k])\n    {show}\n"
    cell = Cell(client, f"%%gpu\n{source}{waiting(gate)}")
    cell.until(outputs=3)
    assert not cell.ended
    images = [content["data"]["image/png"] for content in contents(cell, "display_data")]
    assert len({base64.b64decode(image) for image in images}) == 3
    gate.touch()
    cell.until()
    assert len(seen(cell)) == 4, "the figures, once, and what the cell cost"


def test_a_display_is_updated_by_its_id(client: BlockingKernelClient, gate: Path) -> None:
    second = gate.with_name("second")
    source = (
        "from IPython.display import display as shown, update_display, HTML\n"
        "handle = shown('first', display_id=True)\n"
        "print(type(handle).__module__)\n"
        f"{waiting(gate)}"
        "handle.update(HTML('<b>2</b>'))\nprint('two')\n"
        f"{waiting(second)}"
        "update_display('third', display_id=handle.display_id)\nprint('three')\n"
        "named = display('named', display_id='mine')\nnamed.display('again')\n"
        "display(display_id='empty');"
    )
    cell = Cell(client, f"%%gpu\n{source}")
    cell.until("IPython.core.display_functions")
    gate.touch()
    cell.until("two")
    assert not cell.ended
    second.touch()
    cell.until()
    first, then, third, *named, empty, _ = (
        content for kind, content in cell.outputs if kind != "stream"
    )
    assert first["transient"] == then["transient"] == third["transient"] != {}
    assert then["data"]["text/html"] == "<b>2</b>"
    assert [kind for kind, _ in cell.outputs if kind != "stream"][:3] == [
        "display_data",
        *["update_display_data"] * 2,
    ]
    assert [one["transient"] for one in named] == [{"display_id": "mine"}] * 2
    assert (empty["data"], empty["transient"]) == ({}, {"display_id": "empty"})


def test_a_later_cell_updates_what_an_earlier_one_displayed(client: BlockingKernelClient) -> None:
    run(client, "%%gpu\nkept = display('a', display_id='kept')")
    later = ran(client, "%%gpu\nkept.update('b')")
    (update,) = contents(later, "update_display_data")
    assert update["transient"] == {"display_id": "kept"}
    assert "'b'" in update["data"]["text/plain"]
    failed = ran(client, "%%gpu\ndisplay(1, update=True)")
    assert "display_id required for update_display" in failed.told


def test_updates_that_nobody_could_see_are_left_out(client: BlockingKernelClient) -> None:
    source = "bar = display(0, display_id=True)\nfor k in range(1, 3001): bar.update(k)"
    cell = ran(client, f"%%gpu\n{source}")
    updates = contents(cell, "update_display_data")
    assert updates[-1]["data"]["text/plain"] == "3000"
    assert len(updates) < 1000


def test_output_is_cleared(client: BlockingKernelClient) -> None:
    cell = ran(
        client,
        "%%gpu\nfrom IPython.display import clear_output\nprint('old')\nclear_output()\n"
        "clear_output(wait=True)\ndisplay('new', clear=True)",
    )
    waits = [content["wait"] for content in contents(cell, "clear_output")]
    assert waits
    assert waits[-1]
    kinds = [kind for kind, _ in cell.outputs]
    assert kinds[0] == "stream"
    assert kinds[-3:] == ["clear_output", "display_data", "display_data"]


def test_what_waits_to_be_cleared_stays_until_there_is_something_new(
    client: BlockingKernelClient, gate: Path
) -> None:
    source = (
        "from IPython.display import clear_output\n"
        "for k in range(2000):\n    clear_output(wait=True)\n    display(k)\n"
        "clear_output(wait=True)\nprint(end='', flush=True)\n"
    )
    cell = Cell(client, f"%%gpu\n{source}{waiting(gate)}")
    while "1999" not in dict(seen(cell)).values():
        cell.until(outputs=len(cell.outputs) + 1)
        assert not cell.ended
    assert [kind for kind, _ in seen(cell)][-1] in {"display_data", "clear_output"}
    assert len(cell.outputs) < 1000
    gate.touch()
    cell.until()


def test_a_function_shows_under_the_cell_that_has_called_it(client: BlockingKernelClient) -> None:
    run(
        client,
        "def plotted(k):\n    import matplotlib.pyplot as plt\n    from IPython.display import "
        "display\n    display(k)\n    plt.plot([k])\n    plt.show()\n    return k",
    )
    cell = ran(client, "await gpu.run(plotted, 7)")
    assert [content["data"]["text/plain"][:7] for _, content in cell.outputs] == [
        "7",
        "<Figure",
        "7",
    ]


def test_what_a_failed_cell_has_displayed_comes_before_its_error(
    client: BlockingKernelClient,
) -> None:
    cell = ran(
        client,
        "%%gpu\nimport matplotlib.pyplot as plt\ndisplay('shown')\nplt.plot([1])\n1 / 0",
    )
    kinds = [kind for kind, _ in cell.outputs]
    assert kinds[:3] == ["display_data", "display_data", "error"]
    assert "image/png" in cell.outputs[1][1]["data"]


def test_a_large_display_comes_whole(client: BlockingKernelClient) -> None:
    cell = ran(client, "%%gpu\ndisplay({'text/plain': 'x' * 3_000_000}, raw=True)")
    assert cell.outputs[0][1]["data"]["text/plain"] == "x" * 3_000_000


def test_what_cannot_be_displayed_says_so_and_what_comes_after_is_shown(
    client: BlockingKernelClient,
) -> None:
    cell = ran(client, "%%gpu\ndisplay({'text/plain': 1j}, raw=True)\nprint('after')")
    assert not cell.error
    assert "accel_lab: this cannot be displayed: " in cell.text
    assert "after" in cell.text
    assert "data must be a dict" in ran(client, "%%gpu\ndisplay([1], raw=True)").told


def test_a_quiet_cell_shows_nothing(client: BlockingKernelClient) -> None:
    cell = ran(client, "%%gpu --quiet\ndisplay(1)\nprint('text')\n2")
    assert seen(cell) == [("stream", "text\n")]
    assert seen(ran(client, "%%gputime -n 1 -r 1\ndisplay(1)"))[0][0] == "execute_result"


@pytest.mark.parametrize("module", ["tqdm.notebook", "tqdm.auto", "tqdm"])
def test_a_bar_of_tqdms_is_text(client: BlockingKernelClient, module: str) -> None:
    pytest.importorskip("tqdm")
    cell = ran(client, f"%%gpu\nfrom {module} import tqdm, trange\nfor k in tqdm(range(7)): pass")
    assert not cell.error
    assert "| 7/7 [" in cell.text
    assert len(contents(cell, "display_data")) == 1, "what the cell cost"
    here = f"from {module} import tqdm\n_ = tqdm"
    run(client, here)
    assert "| 7/7 [" in run(client, "%%gpu\nfor k in tqdm(range(7)): pass"), "the notebook's own"
    run(client, "del tqdm")


def test_a_widget_says_why_it_cannot_be_shown(client: BlockingKernelClient) -> None:
    cell = ran(client, "%%gpu\nimport ipywidgets\nslider = ipywidgets.IntSlider()\nslider")
    assert not cell.error
    (said, _) = contents(cell, "display_data")
    assert list(said["data"]) == ["text/plain"]
    assert "A widget of a %%gpu cell cannot be shown" in said["data"]["text/plain"]
    assert "\n" not in said["data"]["text/plain"]


def test_a_flood_of_displays_is_bounded_and_what_was_left_out_is_counted(
    client: BlockingKernelClient,
) -> None:
    cell = ran(client, "%%gpu\nfor k in range(1203): display(k)\n")
    displayed = [text for kind, text in seen(cell) if kind == "display_data" and text.isdigit()]
    assert displayed == [str(k) for k in range(1000)]
    assert ("stream", "accel_lab: 203 more displays are not shown\n") in seen(cell)
    again = ran(
        client,
        "%%gpu\nfrom IPython.display import clear_output\n"
        "for k in range(1003):\n    clear_output(wait=True)\n    display(k)\n",
    )
    assert "not shown" not in str(seen(again))
    assert ("display_data", "1002") in seen(again)


def test_display_needs_no_import_in_functions(client: BlockingKernelClient) -> None:
    cell = ran(client, "gpu.run(lambda: display('in a function')).result()")
    assert seen(cell) == [("display_data", "'in a function'")]
