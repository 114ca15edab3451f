"""The objects that `%%gpu` cells leave, as the memory view lists and drops them."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accel_lab import System, views
from accel_lab.compute.events.samples import MemorySampled
from accel_lab.errors import AccelError, InvalidArgument, StaleRef
from accel_lab.views.scene import names as names_
from accel_lab.views.vram import VramView
from accel_lab.views.widget import commands
from tests.notebook.cells import Notebook, lose

WAIT_S = 20.0
MODEL = "model = {'w': np.zeros(1000), 'b': np.zeros(24)}"
NBYTES = 8 * 1024


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    """Open a notebook with a context of its own: nothing of other tests is in it."""
    with System("host", devices=1, name="lab") as lab:
        yield Notebook(lab)


@pytest.fixture
def shown(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> VramView:
    """Show the memory in a notebook with these names."""
    for module in (names_, sys.modules[VramView.__module__]):
        monkeypatch.setattr(module, "notebook", lambda: notebook.names)
    monkeypatch.setattr(names_, "EVERY_S", 0.0)
    return views.vram(notebook.lab)


def until(view: VramView, wanted: Callable[[list[Any]], bool]) -> list[Any]:
    """Return the first list of objects that is wanted; they are looked at meanwhile."""
    end = time.monotonic() + WAIT_S
    while True:
        (device,) = view.sample()["devices"]
        objects: list[Any] = device.get("objects", [])
        if "strip" in device and wanted(objects):
            return objects
        assert time.monotonic() < end, objects
        time.sleep(0.02)


def named(*names: str) -> Callable[[list[Any]], bool]:
    return lambda objects: [one["name"] for one in objects] == list(names)


def test_an_object_is_listed_with_its_size_and_who_keeps_it(
    notebook: Notebook, shown: VramView
) -> None:
    notebook(f"{MODEL}\nsmall = [np.zeros(8)]\ncount = 3")
    notebook.names["again"] = notebook.names["model"]
    model, small = until(shown, named("model", "small"))
    assert (model["what"], model["bytes"]) == ("dict", NBYTES)
    assert set(model["kept"]) == {"model", "again", "%%gpu model"}
    assert (small["what"], small["bytes"]) == ("list", 64)
    lines = str(shown).splitlines()
    row = next(line for line in lines if line.startswith("cpu0    model")).split()
    assert row[:6] == ["cpu0", "model", "dict", "8", "KiB", str(notebook.gpu.generation)]
    page = shown._repr_mimebundle_()[0]["text/html"]
    assert "Objects of %%gpu cells" in page
    assert "<td>8 KiB</td>" in page


def test_the_context_keeps_what_the_notebook_no_longer_names(
    notebook: Notebook, shown: VramView
) -> None:
    notebook(MODEL)
    del notebook.names["model"]
    (model,) = until(shown, named("model"))
    assert model["kept"] == ["%%gpu model"]


def test_what_a_cell_deletes_or_binds_anew_is_no_longer_listed(
    notebook: Notebook, shown: VramView
) -> None:
    notebook(MODEL)
    before = notebook.names["before"] = notebook.names["model"]
    notebook("model = {'w': np.zeros(4)}")
    (model,) = until(shown, lambda objects: len(objects) == 1 and objects[0]["bytes"] == 32)
    assert "before" not in model["kept"]
    notebook("del model")
    until(shown, named())
    del before


def test_drop_has_the_cells_forget_it(notebook: Notebook, shown: VramView) -> None:
    notebook(MODEL)
    handle, gpu = notebook.names["model"], notebook.gpu
    (model,) = until(shown, named("model"))
    commands.obey(shown, "drop", device=gpu.name, space=model["space"], name="model")
    until(shown, named())
    gpu.ping().result(WAIT_S)
    assert shown.sample()["said"] == (
        "Object model of cpu0 is dropped; what uses it now fails with StaleRef"
    )
    with pytest.raises(StaleRef):
        handle.get()
    assert not any("%%gpu model" in row.kept_by for row in gpu.resident)


def test_a_row_of_resident_that_is_dropped_goes_from_the_view(
    notebook: Notebook, shown: VramView
) -> None:
    notebook(MODEL)
    until(shown, named("model"))
    notebook.gpu.resident["%%gpu model"].drop()  # type: ignore[union-attr]
    until(shown, named())
    notebook(MODEL)
    until(shown, named("model"))
    notebook.names["model"].drop()
    until(shown, named())


def test_objects_go_with_their_context(notebook: Notebook, shown: VramView) -> None:
    notebook(MODEL)
    until(shown, named("model"))
    lose(notebook)
    until(shown, named())


def test_a_device_that_is_suspended_has_none(notebook: Notebook, shown: VramView) -> None:
    notebook(MODEL)
    until(shown, named("model"))
    notebook.gpu.suspend()
    until(shown, named())
    notebook.gpu.resume()
    until(shown, named("model"))


def test_what_is_over_has_nothing_to_drop(notebook: Notebook, shown: VramView) -> None:
    notebook(MODEL)
    (model,) = until(shown, named("model"))
    with System("host", devices=1) as other:
        view = views.vram(other)
        assert "objects" not in view.sample()["devices"][0]  # they are of another system
    with pytest.raises(AccelError):
        view.do_drop("cpu0", model["space"], "model")
    with pytest.raises(InvalidArgument):
        shown.do_drop("no such device", model["space"], "model")
    assert until(shown, named("model")) == [model]


def test_objects_are_facts_that_a_recording_keeps(notebook: Notebook, shown: VramView) -> None:
    """So a view of the past, or of another process, has them, too."""
    notebook(MODEL)
    until(shown, named("model"))
    scene = shown.source.look()
    (found,) = scene.memory["cpu0"].objects
    assert isinstance(scene.memory["cpu0"], MemorySampled)
    assert (found.name, found.nbytes, found.generation) == (
        "model",
        NBYTES,
        notebook.gpu.generation,
    )
