"""The line below a `%%gpu` cell."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import System
from accel_lab.compute.execution.backend import Peak
from accel_lab.errors import UserCodeError
from accel_lab.notebook.footer import Footer
from accel_lab.notebook.gpu_cell import GpuCells
from tests.interactive import Shell, shell

KIB, MIB = 1 << 10, 1 << 20
STALL_S = 30.0


class Notebook:
    """A namespace, and the footers of its cells."""

    def __init__(self, lab: System) -> None:
        self.names: dict[str, Any] = {"np": np, "time": time}
        self.footers: list[Footer] = []
        self.gpu = lab.devices[0]
        self._cells = GpuCells(self.names, lambda _: self.gpu, self.footers.append)

    def __call__(self, source: str, line: str = "") -> Footer:
        """Run a cell; return its footer, the only one."""
        self._cells.run(line, source)
        (footer,) = self.footers
        self.footers.clear()
        return footer


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host") as lab:
        yield lab


@pytest.fixture
def notebook(lab: System) -> Notebook:
    return Notebook(lab)


def test_it_has_the_time_of_the_device_and_that_of_the_clock_on_the_wall(
    notebook: Notebook,
) -> None:
    footer = notebook("time.sleep(0.2)")
    assert footer.device == "cpu0"
    assert 0.2 <= footer.device_s < STALL_S
    assert 0.2 <= footer.wall_s < STALL_S


def test_what_goes_along_is_counted_and_handles_cost_nothing(notebook: Notebook) -> None:
    notebook.names |= {"x": np.zeros(MIB, np.uint8), "y": notebook.gpu.put(np.zeros(MIB))}
    assert MIB <= notebook("x.sum()").sent_bytes < MIB + 4 * KIB
    assert notebook("y.sum()").sent_bytes == 0
    assert notebook("1").sent_bytes == 0


def test_what_comes_back_is_counted(notebook: Notebook) -> None:
    assert notebook("'a' * 1000").fetched_bytes == 1002
    assert notebook("quiet = 1").fetched_bytes == 0


def test_what_is_kept_for_a_fault_is_counted_apart_from_what_was_fetched(
    notebook: Notebook,
) -> None:
    footer = notebook("z = np.zeros(MIB := 1 << 20, np.uint8)")
    assert (footer.fetched_bytes, footer.kept_bytes) == (0, MIB)
    assert " · 1 MiB kept for recovery" in repr(footer)
    assert "fetched" not in repr(footer)
    footer = notebook("z += 1")  # it may have been written, so it is kept anew
    assert (footer.fetched_bytes, footer.kept_bytes) == (0, MIB)
    assert notebook("'a' * 1000").kept_bytes == 0


def test_a_system_that_rebuilds_nothing_keeps_nothing() -> None:
    with System("host", recover="stale") as lab:
        assert Notebook(lab)("z = np.zeros(1 << 20)").kept_bytes == 0


def test_the_peak_has_memory_that_was_kept_when_a_cell_before_freed_it(notebook: Notebook) -> None:
    for _ in range(3):
        peak = notebook("held = [np.ones(16 << 20, np.uint8) for _ in range(8)]\ndel held").peak
        if peak is None:
            pytest.skip("the system does not tell what was resident at most")
        assert peak.most_bytes - peak.before_bytes > 96 * MIB


def test_the_peak_has_what_the_cell_held_only_for_a_while(notebook: Notebook) -> None:
    peak = notebook("held = np.ones(256 << 20, np.uint8)\ndel held").peak
    if peak is None:
        pytest.skip("this system does not let a process reset its high-water mark")
    assert peak.most_bytes - peak.before_bytes > 128 * MIB


def test_a_quiet_cell_and_one_that_fails_have_none(notebook: Notebook) -> None:
    with pytest.raises(ValueError, match="not enough values"):
        notebook("1", "--quiet")
    with pytest.raises(UserCodeError):
        notebook("1 / 0")
    assert notebook.footers == []


def test_it_is_one_line_and_leaves_out_what_was_not_measured() -> None:
    peak = Peak(100 * MIB, 132 * MIB, "in use")
    whole = Footer("gpu0", 0.0502, 0.0531, 512, 8 * MIB, 62 * MIB, peak)
    assert repr(whole) == (
        "gpu0 50.2 ms · wall 53.1 ms · 512 B sent, 8 MiB fetched, 62 MiB kept for recovery"
        " · peak 132 MiB in use (+32 MiB)"
    )
    assert whole._repr_html_() == f"<small>{whole!r}</small>"
    least = Footer("<b>", 1.0, 1.5, 0, 0, 0, None)
    assert least._repr_html_() == "<small>&lt;b&gt; 1 s · wall 1.5 s</small>"
    level = Footer("gpu0", 1.0, 1.5, 0, 3, 0, Peak(5, 5, "in use"))
    assert repr(level) == "gpu0 1 s · wall 1.5 s · 3 B fetched · peak 5 B in use"


@pytest.fixture
def interactive() -> Iterator[Shell]:
    with shell() as opened:
        opened("%load_ext accel_lab")
        yield opened


def test_it_stands_below_all_that_the_cell_displays(interactive: Shell, lab: System) -> None:
    interactive.ipython.user_ns["gpu"] = lab.devices[0]
    interactive("%%gpu gpu\ndisplay('first')\n'second'")
    assert interactive.error is None
    first, second, footer = [data["text/plain"] for data in interactive.published]
    assert (first, second) == ("'first'", "'second'")
    assert footer.startswith("cpu0 ")
    assert " · wall " in footer
    interactive.published.clear()
    interactive("%%gpu gpu --quiet\n'third'")
    assert interactive.published == []
