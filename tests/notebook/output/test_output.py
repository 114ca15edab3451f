"""What user code prints, as a front end gets it from a real kernel: all of it, before the end."""

import re
from collections.abc import Iterator

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from accel_lab.compute.output.printing import LIMIT
from tests.kernel import Cell, kernel, run

LINES = "".join(f"{k}\n" for k in range(100_000))
OPEN = """
%load_ext accel_lab
from accel_lab import System
lab = System("host").ready()
gpu = lab.devices[0]
def count():
    for k in range(3000): print(k)
"""


class Counting(Cell):
    """A cell of which it is known how many messages its front end got, until it had ended."""

    messages = 0

    def until(self, text: str = "", *, outputs: int = 0) -> None:
        client, received = self._client, self._client.get_iopub_msg

        def counted(timeout: float) -> dict[str, object]:
            self.messages += 1
            return received(timeout=timeout)

        client.get_iopub_msg = counted  # type: ignore[method-assign]
        try:
            super().until(text, outputs=outputs)
        finally:
            client.get_iopub_msg = received  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def client() -> Iterator[BlockingKernelClient]:
    with kernel(OPEN) as client:
        yield client


def test_many_lines_are_few_messages_and_all_come_before_the_cell_ends(
    client: BlockingKernelClient,
) -> None:
    """A front end takes some thousand messages in a second; nbclient none after the end."""
    cell = Counting(client, "%%gpu --quiet\nfor k in range(100_000): print(k)")
    cell.until()
    assert cell.text == LINES
    assert cell.messages < 1000


@pytest.mark.parametrize("line", ["await gpu.run(count)", "gpu.run(count).result()"])
def test_a_functions_output_comes_before_its_cell_ends(
    client: BlockingKernelClient, line: str
) -> None:
    assert run(client, f"_ = {line}") == LINES[: LINES.index("3000\n")]


@pytest.mark.parametrize("line", ["await reply", "reply.result()"])
def test_it_comes_before_its_cell_ends_where_another_thread_has_read_the_answer(
    client: BlockingKernelClient, line: str
) -> None:
    source = (
        "import time\nfor k in range(20):\n    reply = gpu.run(print, k)\n"
        f"    while not reply.done: time.sleep(0.001)\n    {line}\n"
    )
    assert run(client, source) == "".join(f"{k}\n" for k in range(20))


def test_what_a_failed_cell_has_printed_comes_before_its_error(
    client: BlockingKernelClient,
) -> None:
    cell = Cell(client, "%%gpu\nfor k in range(200): print(k)\n1 / 0")
    cell.until()
    assert cell.error
    assert cell.text == LINES[: LINES.index("200\n", 3)]


def test_what_c_code_prints_is_bounded_counted_and_comes_in_time(
    client: BlockingKernelClient,
) -> None:
    assert run(client, "%%gpu --quiet\nimport os; os.system('echo one line')") == "one line\n"
    flood = "%%gpu --quiet\nos.system('head -c 3000000 /dev/zero | tr \\\\\\\\0 x')"
    shown = run(client, flood)
    assert shown.startswith("x" * LIMIT + "\naccel_lab: ")
    told = re.findall(r"accel_lab: ([\d,]+) more characters were printed", shown)
    assert sum(int(one.replace(",", "")) for one in told) == 3_000_000 - LIMIT
    assert run(client, "%%gpu --quiet\nos.system('echo again')") == "again\n"


def test_a_line_that_has_not_ended_is_shown_while_it_grows(client: BlockingKernelClient) -> None:
    cell = Cell(
        client, "%%gpu --quiet\nimport time\nprint('.', end='')\nwhile True: time.sleep(0.01)"
    )
    cell.until(".")
    assert not cell.ended
    cell.stop()
    cell.until()
    assert cell.error
