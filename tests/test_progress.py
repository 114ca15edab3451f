"""What takes over a second shows how far it is: uploads, compilations, replays."""

import os
import pty
import re
import subprocess
import sys
import time

import nbformat
import pytest
from nbclient import NotebookClient

from accel_lab import System, jit
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
        [sys.executable, "-c", f"{QUIET}{UPLOAD}lab.close()"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=120,
    )
    assert done.stdout + done.stderr == ""
    assert in_terminal(QUIET.replace("0.0", "60.0") + UPLOAD + "lab.close()") == ""
    with Bar("quiet", 10, shown=False) as bar:
        bar.at(3)
    assert capsys.readouterr().out == ""


def test_a_compilation_may_outlast_who_waits_for_it() -> None:
    require("compiler")
    source = f"#include <regex>\n__global__ void late(float* x) {{ x[0] = {time.time()}f; }}"
    with System("host") as lab:
        kernel = jit.compile(lab.devices[0], source, "late")
        with pytest.raises(TimeoutError, match=r"late is not compiled within 0\.01 s"):
            kernel.result(0.01)
        assert kernel.result() is kernel
