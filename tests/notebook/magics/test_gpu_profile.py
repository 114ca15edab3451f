"""`%%gpuprofile`: the messages of a cell in a real IPython, and how long a real context worked."""

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from accel_lab import Device, System, blas
from accel_lab.compute.events.samples import Slice
from accel_lab.notebook.gpu_profile import Kind, Profile, Watch
from accel_lab.views.scene.observer import observer_of
from tests.interactive import Shell, shell
from tests.views.test_tree import Table

STALL_S = 30.0
TRIES = 5
"""A machine that stalls for seconds makes a context miss a message, and says so."""


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", name="profiled") as system:
        yield system


@pytest.fixture
def gpu(lab: System) -> Device:
    return lab.devices[0]


@pytest.fixture
def notebook(lab: System, gpu: Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """Open an IPython that has the extension, and sees the system of this module alone."""
    monkeypatch.setattr("accel_lab.extension.running", lambda: [lab])
    with shell() as opened:
        opened("%load_ext accel_lab")
        a = gpu.put(np.ones((8, 8)))
        a.result()
        opened.ipython.user_ns.update(gpu=gpu, blas=blas, time=time, a=a)
        yield opened


def profiled(notebook: Shell, source: str) -> Profile:
    """Profile a cell, until all its messages were seen."""
    for _ in range(TRIES):
        notebook.published.clear()
        found: Profile = notebook(f"%%gpuprofile\n{source}")
        assert notebook.error is None
        assert isinstance(found, Profile)
        if not found.unseen:
            return found
    return pytest.fail(f"a message has never left a trace: {found!r}")


def counts(profile: Profile) -> dict[tuple[str, str, str], int]:
    return {(kind.name, kind.device, kind.stream): kind.count for kind in profile.kinds}


def test_each_kind_of_message_is_a_row(notebook: Shell) -> None:
    source = "for _ in range(3):\n    c = blas.gemm(a, a)\nc.get()"
    assert counts(profiled(notebook, source)) == {
        ("Gemm", "cpu0", "blas"): 3,
        ("Download", "cpu0", "download"): 1,
    }


def test_it_waits_for_the_work_and_has_its_time(notebook: Shell) -> None:
    profile = profiled(notebook, "reply = gpu.run(time.sleep, 0.3)")
    assert notebook.ipython.user_ns["reply"].done
    (kind,) = profile.kinds
    assert (kind.name, kind.count) == ("sleep", 1)
    assert 0.3 <= kind.longest_s == kind.total_s == profile.total_s < STALL_S
    assert 0.3 <= profile.wall_s < STALL_S


def test_what_was_sent_before_is_not_the_cells(notebook: Shell, gpu: Device) -> None:
    before = gpu.run(time.sleep, 0.5)
    assert counts(profiled(notebook, "c = blas.gemm(a, a)")) == {("Gemm", "cpu0", "blas"): 1}
    assert before.done


def test_a_cell_that_runs_in_the_context_is_one_message(notebook: Shell) -> None:
    notebook("%%gpu gpu --quiet\n1")  # the first one brings the notebook's folder and environment
    profile = profiled(notebook, "%%gpu gpu --quiet\nx = xp.sin(a)\ny = xp.cos(x)")
    (cell,) = [kind for kind in profile.kinds if kind.name.startswith("gpu cell ")]
    assert (cell.device, cell.stream, cell.count) == ("cpu0", "run", 1)
    assert notebook.ipython.user_ns["y"].shape == (8, 8)


def test_the_value_is_shown_and_then_the_timeline_of_that_cell(notebook: Shell) -> None:
    profiled(notebook, "c = blas.gemm(a, a)\n'a value'")
    value, drawn = [data["text/plain"] for data in notebook.published]
    assert value == "'a value'"
    head, columns, row = drawn.splitlines()
    assert head.startswith("profiled, cell ")
    assert ": 1 slice in " in head
    assert columns.startswith("Stream")
    assert row.split()[:2] == ["cpu0/blas", "1"]


def test_names_are_the_notebooks_and_a_semicolon_hides_the_value(notebook: Shell) -> None:
    profiled(notebook, "bound = 7\nbound;")
    assert notebook.ipython.user_ns["bound"] == 7
    assert notebook.published == []  # nor is there a timeline: nothing was sent


def test_a_cell_that_sends_nothing_says_so(notebook: Shell) -> None:
    profile = notebook("%%gpuprofile\nx = 1")
    assert profile.kinds == []
    assert repr(profile).startswith("no messages were seen in ")
    assert "\n" not in repr(profile)
    assert notebook.published == []


def test_what_it_raises_is_the_cells_and_nothing_is_left(
    notebook: Shell, lab: System, capsys: pytest.CaptureFixture[str]
) -> None:
    followers = len(observer_of(lab).followers)
    assert notebook("%%gpuprofile\n\nx = 1\n1 / 0") is None
    assert isinstance(notebook.error, ZeroDivisionError)
    assert "line 4\n" in capsys.readouterr().out
    assert len(observer_of(lab).followers) == followers
    assert not any(one.name == "accel_lab profile" for one in threading.enumerate())


def is_watched(lab: System) -> bool:
    """Whether anything is left of a profile."""
    return (
        any(one.name == "accel_lab profile" for one in threading.enumerate())
        or any(getattr(one, "__func__", None) is Watch._saw for one in observer_of(lab).followers)
        or any(supervisor.sampler.closely for supervisor in lab._supervisors)
    )


def interrupt(*_: object) -> None:
    """Do as Ctrl-C does to whoever waits."""
    raise KeyboardInterrupt


def test_ctrl_c_before_the_devices_trace_leaves_nothing(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watch, "_wait", interrupt)
    with pytest.raises(KeyboardInterrupt), Watch(lab):
        pass
    assert not is_watched(lab)


def test_a_profile_without_a_thread_leaves_nothing(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(RuntimeError, match="new thread"):
        Watch(lab).__enter__()
    assert not is_watched(lab)


def test_ctrl_c_at_the_end_of_a_profile_leaves_nothing(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(lab).__enter__()
    assert is_watched(lab)
    monkeypatch.setattr(watch._thread, "join", interrupt)
    with pytest.raises(KeyboardInterrupt):
        watch.__exit__(None, None, None)
    threading.Thread.join(watch._thread)
    assert not is_watched(lab)


def test_it_takes_no_argument_and_needs_a_system(
    notebook: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook("%%gpuprofile gpu\n1")
    assert "%%gpuprofile takes no argument: 'gpu'" in capsys.readouterr().err
    monkeypatch.setattr("accel_lab.extension.running", list)
    notebook("%%gpuprofile\n1")
    assert "no system is running" in capsys.readouterr().err


def made_up(unseen: int = 0) -> Profile:
    works = [
        ("gpu0", Slice(1, "Gemm", "blas", "kernel", 10.0, 10.5)),
        ("gpu0", Slice(2, "Gemm", "blas", "kernel", 10.5, 11.5)),
        ("gpu1", Slice(2, "Gemm", "blas", "kernel", 10.0, 10.25)),
        ("gpu0", Slice(3, "<b>", "run", "function", 10.0, 10.25)),
    ]
    return Profile(works, 2.5, unseen)


def test_kinds_are_summed_and_the_longest_come_first() -> None:
    assert made_up().kinds[0] == Kind("Gemm", "gpu0", "blas", 2, 1.5, 1.0)
    assert made_up().total_s == 2.0


def test_it_reads_as_a_table() -> None:
    assert repr(made_up()).splitlines() == [
        "4 messages: 2 s of work in 2.5 s",
        "Message  On         Count   Total   Share  Longest",
        "Gemm     gpu0/blas      2   1.5 s  75.0 %      1 s",
        "Gemm     gpu1/blas      1  250 ms  12.5 %   250 ms",
        "<b>      gpu0/run       1  250 ms  12.5 %   250 ms",
    ]
    assert repr(made_up(1200)).startswith("4 messages: 2 s of work in 2.5 s, 1,200 more not seen\n")
    table = Table(made_up()._repr_html_())
    assert table.rows[-1] == ["<b>", "gpu0/run", "1", "250 ms", "12.5 %", "250 ms"]
    assert repr(Profile([], 0.5, 3)) == "no messages were seen in 500 ms, 3 more not seen"
    nothing = Profile([("gpu0", Slice(1, "Ping", "run", "function", 1.0, 1.0))], 0.5, 0)
    assert repr(nothing).splitlines()[1:] == [
        "Message  On        Count  Total  Share  Longest",
        "Ping     gpu0/run      1    0 s             0 s",
    ]
