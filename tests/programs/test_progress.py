"""What takes over a second shows how far it is: copies, compilations, replays, devices to come."""

import os
import pty
import re
import subprocess
import sys
import time

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from accel_lab import System, jit
from accel_lab.display import progress
from accel_lab.display.progress import Bar
from tests.conftest import require
from tests.project import ROOT

QUIET = "from accel_lab.display import progress; progress.QUIET_S = 0.0\n"
UPLOAD = """
import numpy as np
from accel_lab import System, jit
lab = System("host")
gpu = lab.devices[0]
x = gpu.put(np.zeros(8 << 20))
"""
COMPILE = """
import time
source = '#include <regex>\\n__global__ void late(float* x) { x[0] = %f; }' % time.time()
jit.compile(gpu, source, "late").result()
"""
REPLAY = """
def nap(x):
    import time
    time.sleep(0.2)
    return x
refs = [gpu.run(nap, x, pure=True) for _ in range(8)]
with System("host") as other:
    report = lab.journal.replay(other)
lab.close()
"""
DOWNLOAD = """
from accel_lab.compute.message.service import in_context
from accel_lab.compute.residency.holdings import ContextMemory
def slow_downloads(memory):
    import time
    backend = memory._context.backend
    real = backend.download
    def download(*args):
        time.sleep(0.6)
        real(*args)
    backend.download = download
gpu.run(slow_downloads, in_context(ContextMemory)).result()
"""
AWAY = """
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.message.service import in_context
def slow_return(workspaces):
    import time
    class Slow:
        def __reduce__(self):
            return time.sleep, (1.0,)
    workspaces.of("test").names["slow"] = Slow()
gpu.run(slow_return, in_context(Workspaces)).result()
lab.suspend()
lab.resume()
"""
REBUILD = """
from accel_lab.errors import ContextLost
def nap(x, seconds):
    import time
    time.sleep(seconds)
    return x[:8] + 1
small = gpu.put(np.zeros(64))
refs = [gpu.run(nap, small, 0.3, pure=True) for _ in range(5)]
refs[-1].result()
try:
    lab.inject("kill", gpu).result()
except ContextLost:
    pass
"""


def in_terminal(source: str) -> str:
    """Run a program in a terminal of its own and return what it shows, without the colours."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", source]
    shown = b""
    with subprocess.Popen(command, stdout=theirs, cwd=ROOT, env=os.environ | {"COLUMNS": "120"}):
        os.close(theirs)
        while True:
            try:
                data = os.read(ours, 1 << 16)
            except OSError:  # so ends a terminal whose other side has been closed
                break
            if not data:
                break
            shown += data
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_a_terminal_shows_how_much_is_uploaded_compiled_and_replayed() -> None:
    require("compiler")
    shown = in_terminal(QUIET + UPLOAD + COMPILE + REPLAY)
    assert re.search(r"upload to cpu0: (8|16|24|32|40|48|56) / 64 MiB", shown)
    assert "upload to cpu0: 64 / 64 MiB" in shown
    assert re.search(r"compile late: \d+\.\d s", shown)
    counts = [int(found) for found in re.findall(r"replay: (\d+) of", shown)]
    (total,) = {int(found) for found in re.findall(r"replay: \d+ of (\d+)", shown)}
    assert counts == sorted(counts)
    assert counts[-1] == total
    assert len(set(counts)) >= 5, "it counts what is answered, not what is sent"


def test_a_terminal_shows_a_download_and_that_a_device_comes_back() -> None:
    waits = "x.get()\n", AWAY, REBUILD, "refs[-1].get()\nlab.close()\n"
    shown = in_terminal(QUIET + UPLOAD + DOWNLOAD + "".join(waits))
    assert re.search(r"download from cpu0, 64 MiB: 0\.[3-9] s", shown)
    assert re.search(r"suspend cpu0: 64 MiB, \d+\.\d s", shown)
    assert re.search(r"resume cpu0, 64 MiB: [1-9]\.\d s", shown)
    found = re.findall(r"make buffers of cpu0 again: (\d+) of (\d+), ", shown)
    counts, (total,) = [int(count) for count, _ in found], {int(total) for _, total in found}
    assert counts == sorted(counts)
    assert len(set(counts)) >= 4, "it counts what has been run again, not what is sent"
    assert counts[-1] == total


def test_a_notebook_shows_the_same_to_who_awaits() -> None:
    sources = QUIET, UPLOAD, DOWNLOAD + "await gpu.get(x)", REBUILD, "await gpu.get(refs[-1])"
    cells = [nbformat.v4.new_code_cell(one) for one in (*sources, "lab.close()")]
    book = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(book, timeout=120).execute()
    shown = [
        output.data["text/html"]
        for cell in book.cells
        for output in cell.outputs
        if output.output_type == "display_data"
    ]
    assert re.fullmatch(r"<div>download from cpu0, 64 MiB: \d+\.\d s</div>", shown[1])
    line = re.compile(r"<div>make buffers of cpu0 again: (\d+) of (\d+), \d\.\d s</div>")
    (again,) = filter(None, map(line.fullmatch, shown))
    assert again[1] == again[2] or shown[-1].startswith("<div>download"), shown


def test_a_download_that_waits_for_what_computes_is_not_taken_for_slow() -> None:
    """Otherwise a loop that reads its loss would leave a line for each time."""

    def nap() -> None:
        time.sleep(0.5)

    with System("host") as lab:
        gpu = lab.devices[0]
        x = gpu.put(np.zeros(8))
        requests = gpu._requests
        gpu.ping().result()
        running, copied = gpu.run(nap), gpu.get(x)
        requests.flush()
        assert requests.pump.late() is None
        assert copied.copying == "download from cpu0, 64 B"
        running.result()
        copied.result()


def test_one_bar_is_shown_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen:
        def __init__(self, name: str) -> None:
            self.name = name

        def draw(self, line: str, *_: object) -> None:
            drawn.append(line.partition(":")[0])

        def end(self) -> None:
            drawn.append("end")

    drawn: list[str] = []
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    monkeypatch.setattr(progress, "REFRESH_S", 0.0)
    monkeypatch.setattr(progress, "_drawing", lambda: Screen("one"))
    with Bar("outer", 2) as outer:
        outer.at(1)
        with Bar("inner", 2) as inner:
            inner.at(1)
        outer.at(2)
    with Bar("next", 2) as after:
        after.at(1)
    abandoned = Bar("abandoned", 2)
    abandoned.at(1)
    del abandoned
    with Bar("last", 2) as last:
        last.at(1)
    ended = ["outer", "outer", "outer", "end", "next", "next", "end"]
    assert drawn == [*ended, "abandoned", "last", "last", "end"]


def test_a_notebook_keeps_a_line_that_reads_well_without_a_kernel() -> None:
    require("compiler")
    awaited = COMPILE.replace("jit.compile", "await jit.compile").replace(".result()", "")
    cells = [nbformat.v4.new_code_cell(one) for one in (QUIET, UPLOAD, awaited, "lab.close()")]
    book = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(book, timeout=120).execute()
    shown = [
        output.data
        for cell in book.cells
        for output in cell.outputs
        if output.output_type == "display_data"
    ]
    uploaded, compiled = shown
    assert re.fullmatch(r"upload to cpu0: 64 / 64 MiB, \d+\.\d s", uploaded["text/plain"])
    assert re.fullmatch(r"<div>compile late: \d+\.\d s</div>", compiled["text/html"])


def test_nothing_is_shown_where_nobody_looks_or_for_what_is_quick(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{QUIET}{UPLOAD}x.result()\nlab.close()"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=120,
    )
    assert done.stdout + done.stderr == ""
    patient = QUIET.replace("0.0", "60.0") + UPLOAD + DOWNLOAD
    assert in_terminal(f"{patient}x.get()\nlab.suspend()\nlab.resume()\nlab.close()") == ""
    with Bar("quiet", 10, shown=False) as bar:
        bar.at(3)
    assert capsys.readouterr().out == ""


def test_a_compilation_may_outlast_who_waits_for_it() -> None:
    require("compiler")
    source = f"#include <regex>\n__global__ void late(float* x) {{ x[0] = {time.time()}f; }}"
    with System("host") as lab:
        kernel = jit.compile(lab.devices[0], source, "late")
        with pytest.raises(TimeoutError, match=r"late did not compile within 0\.01 s"):
            kernel.result(0.01)
        assert kernel.result() is kernel
