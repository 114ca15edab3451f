"""What asks a terminal in a `%%gpu` cell, and where there is one: in a real kernel."""

from collections.abc import Iterator

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from tests.kernel import kernel, ran, run

OPEN = """
%load_ext accel_lab
from accel_lab import System
lab = System("host").ready()
gpu = lab.devices[0]
"""


@pytest.fixture(scope="module")
def client() -> Iterator[BlockingKernelClient]:
    with kernel(OPEN) as client:
        yield client


@pytest.mark.parametrize(
    "source",
    [
        "name = input('who? ')",
        "import getpass\ngetpass.getpass()",
        "import pdb\npdb.Pdb().set_trace()\nx = 1",
        "import pdb\npdb.run('1')",
        "import code\ncode.interact()",
    ],
    ids=["input", "getpass", "debugger", "run", "interact"],
)
def test_what_would_be_typed_is_refused_in_one_line_that_says_what_works(
    client: BlockingKernelClient, source: str
) -> None:
    cell = ran(client, f"%%gpu\n{source}")
    assert cell.error == "UserCodeError"
    (said,) = [line for line in cell.told.splitlines() if "UnsupportedOperation" in line]
    assert "has no terminal. Ask in a cell without %%gpu" in said
    assert "breakpoint()" in said
    assert "EOFError" not in cell.told
    assert "BdbQuit" not in cell.told


def test_a_function_that_asks_is_answered_alike(client: BlockingKernelClient) -> None:
    cell = ran(client, "await gpu.run(lambda: input())")
    assert "has no terminal" in cell.told


@pytest.mark.parametrize(
    "call",
    [
        "breakpoint()",
        "import pdb; pdb.set_trace()",
        "from pdb import set_trace; set_trace()",
        "from IPython.core.debugger import set_trace; set_trace()",
    ],
)
def test_a_breakpoint_tells_the_variables_and_goes_on(
    client: BlockingKernelClient, call: str
) -> None:
    said = run(client, f"%%gpu\ndef f(depth):\n    half = depth / 2\n    {call}\nf(3)\nprint('on')")
    first, *rest = said.splitlines()
    assert "line 3: nothing stops here, where no terminal is" in first
    assert {"  depth = 3", "  half = 1.5"} <= set(rest)
    assert rest[-1] == "on"


def test_pdb_is_answered_with_the_frames_of_a_failed_cell(client: BlockingKernelClient) -> None:
    run(client, "%pdb on")
    try:
        cell = ran(client, "%%gpu\ndef f(x):\n    return x / 0\nf(5)")
        assert cell.error == "UserCodeError"
        assert "ZeroDivisionError: division by zero, in a context: its frames" in cell.text
        assert "    x = 5" in cell.text
        assert "Pdb" not in cell.text
    finally:
        run(client, "%pdb off")
