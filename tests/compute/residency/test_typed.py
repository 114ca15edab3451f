"""What an error advises works when it is typed, whatever the user calls things."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import accel_lab
from accel_lab import System
from accel_lab.compute.residency.typed import typed
from accel_lab.errors import CircuitOpen, ContextLost, InvalidArgument, JournalError, SystemClosed
from tests.interactive import Shell, shell

PUT = "<gpu>.put(1)"


@pytest.fixture
def notebook() -> Iterator[Shell]:
    with shell() as notebook:
        yield notebook
        notebook(
            "closed = [one.close() for one in list(globals().values()) if hasattr(one, 'arena')]"
        )


def test_a_device_is_called_by_its_name_or_by_its_systems(notebook: Shell) -> None:
    lab = notebook("from accel_lab import System; lab = System('host', devices=2); lab")
    second = lab.devices[1]
    assert typed(second, PUT) == "lab.devices[1].put(1)"
    assert typed(second, "<lab>.explain()") == "lab.explain()"
    notebook("card = lab.devices[1]")
    assert typed(second, PUT) == "card.put(1)"
    assert typed(None, PUT) == "gpu.put(1)"


def test_a_name_of_another_system_is_not_advised(notebook: Shell) -> None:
    """What no name leads to is found among the open systems."""
    notebook("from accel_lab import System; lab = System('host'); gpu = lab.devices[0]")
    mine = {"second": notebook("keep = [System('host')]; keep[0]")}
    device = mine["second"].devices[0]
    advice = typed(device, PUT)
    assert advice.startswith("from accel_lab.open_systems import running; running()[")
    assert notebook(advice).device is device
    advice = typed(device, "<lab>.explain()")
    notebook(advice)
    assert isinstance(notebook.error, JournalError)  # there was no loss


def test_of_two_devices_of_one_name_an_error_says_whose_it_is(notebook: Shell) -> None:
    notebook("from accel_lab import System; one = System('host', name='first')")
    notebook("two = System('host', name='second', max_restarts=0)")
    notebook("two.inject('kill').result()")
    assert isinstance(notebook.error, ContextLost)
    assert str(notebook.error).startswith("cpu0 of second lost its context of generation 1")
    notebook("two.devices[0].ping().result()")
    assert isinstance(notebook.error, CircuitOpen)
    assert str(notebook.error).startswith("cpu0 of second lost its context too often")


def test_the_default_device_is_imported_where_no_name_leads_to_it(notebook: Shell) -> None:
    device = accel_lab.default_system().devices[0]
    assert typed(device, PUT) == "from accel_lab import gpu; gpu.put(1)"
    assert notebook(typed(device, PUT)).get() == 1
    assert typed(device, PUT) == "gpu.put(1)"
    notebook("gpu = 'taken'")
    advice = typed(device, PUT)
    assert advice.startswith("from accel_lab import default_system; ")
    assert notebook(advice).get() == 1
    advice = typed(device, "<lab>.explain()")
    notebook(advice)
    assert isinstance(notebook.error, JournalError)  # there was no loss


def test_who_is_to_put_an_array_can_do_what_the_error_says(notebook: Shell) -> None:
    notebook("%load_ext accel_lab\nfrom accel_lab import System\nimport numpy as np")
    notebook("lab = System('host'); gpu = lab.devices[0]; lab.close(); x = np.ones((1024, 4096))")
    notebook("%%gpu --quiet\ny = x.sum()")
    assert isinstance(notebook.error, InvalidArgument)
    advice = re.search("put it on the device first: (.*)", str(notebook.error))
    assert advice is not None
    notebook(advice[1])
    notebook("%%gpu --quiet\ny = x.sum()")
    assert notebook("y.get()") == 1024 * 4096


def test_what_to_do_about_a_loss_names_what_is_there(notebook: Shell) -> None:
    notebook("from accel_lab import System; room = System('host', max_restarts=0)")
    notebook("card = room.devices[0]; room.inject('kill').result()")
    assert isinstance(notebook.error, ContextLost)
    assert notebook.error.remedy.startswith("room.explain() names the message that crashed it")
    notebook("card.ping().result()")
    assert isinstance(notebook.error, CircuitOpen)
    assert "then call card.reset()." in str(notebook.error)
    assert notebook.error.remedy == "Fix the cause, then call card.reset()."
    notebook("card.reset(); card.ping().result()")


def test_without_a_journal_nobody_is_sent_to_explain() -> None:
    with System("host", journal=None) as lab:
        with pytest.raises(ContextLost) as caught:
            lab.inject("kill").result()
        assert "explain" not in caught.value.remedy
        assert "recent names what it ran last" in caught.value.remedy


def test_a_closed_default_device_says_how_to_have_another(notebook: Shell) -> None:
    notebook(
        "import accel_lab; gpu = accel_lab.gpu; accel_lab.default_system().close(); gpu.put(1)"
    )
    assert isinstance(notebook.error, SystemClosed)
    advice = re.search("is closed: (.*) opens another", str(notebook.error))
    assert advice is not None
    notebook(advice[1])
    assert notebook("gpu.put(1).get()") == 1


def test_code_of_another_session_is_run_with_the_leave_that_the_error_names(tmp_path: Path) -> None:
    path = tmp_path / "x.journal"
    with System("host", journal=path) as lab, pytest.raises(ContextLost):
        lab.devices[0].run(__import__("os").abort).result()
    with System("host", journal=path) as lab:
        with pytest.raises(JournalError, match="give allow_code=True"):
            lab.explain()
        found = lab.explain(allow_code=True)
    assert found.culprit is not None
    assert found.culprit.name == "Run"
