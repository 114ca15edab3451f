"""In a real Jupyter kernel, what a context prints and what fails alone shows under its cell."""

import queue
import time
from collections.abc import Iterator

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.kernel import Cell, run

OPEN = """
import time
from accel_lab import System, array
lab = System("host", memory_bytes=1 << 20).ready()
cpu = lab.devices[0]
def say():
    import sys, time
    time.sleep(0.5)
    print("said in the context")
    print("to stderr", file=sys.stderr)
"""


@pytest.fixture
def manager() -> Iterator[KernelManager]:
    manager = KernelManager()
    manager.start_kernel()
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.fixture
def client(manager: KernelManager) -> Iterator[BlockingKernelClient]:
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield client
    client.stop_channels()


def test_late_output_and_failures_appear_under_the_cell_that_sent_the_request(
    client: BlockingKernelClient,
) -> None:
    cells = {
        client.execute(OPEN): "open",
        client.execute("said = cpu.run(say)"): "run",
        client.execute("big = array.zeros(cpu, (1 << 22,), 'uint8')"): "fail",
        client.execute("time.sleep(1.5); print('here')"): "later",
    }
    shown: dict[str, str] = dict.fromkeys(cells.values(), "")
    deadline = time.monotonic() + 60
    while not (shown["later"] and shown["fail"] and "stderr" in shown["run"]):
        assert time.monotonic() < deadline, shown
        try:
            message = client.get_iopub_msg(timeout=1)
        except queue.Empty:
            continue
        if message["msg_type"] == "stream":
            cell = cells[message["parent_header"]["msg_id"]]
            shown[cell] += message["content"]["text"]
    assert shown["run"] == "said in the context\nto stderr\n"
    assert shown["fail"].startswith("accel_lab: cpu0, in Zeros")
    assert "OutOfMemory: 4 MiB were asked for" in shown["fail"]
    opened = shown["open"].replace("accel_lab: starting cpu0…\n", "")  # on a slow machine
    assert (opened, shown["later"]) == ("", "here\n")


SLOW = """
def slow():
    import time
    print("it runs")
    for _ in range(6000): time.sleep(0.01)
"""
SPIN = """
def spin():
    import signal, time
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # as a kernel, it hears nothing
    print("it runs")
    for _ in range(6000): time.sleep(0.01)
"""


@pytest.mark.parametrize(
    "line",
    [
        "await cpu.run(slow)",
        "await asyncio.gather(cpu.run(slow), cpu.run(slow), cpu.ping())",
        "reply = cpu.run(slow); time.sleep(5); await reply",
        "cpu.run(slow).result()",
    ],
)
def test_the_stop_button_ends_what_a_cell_waits_for(
    client: BlockingKernelClient, manager: KernelManager, line: str
) -> None:
    run(client, f"import asyncio, time{OPEN}{SLOW}")
    cell = Cell(client, line)
    cell.until("it runs")
    manager.interrupt_kernel()
    cell.until()
    assert cell.error == "KeyboardInterrupt"
    assert "this cell to cpu0" in cell.text
    assert run(client, "print(cpu.generation, await cpu.run(lambda: 'next'))") == "1 next\n"


def test_the_stop_button_pressed_twice_in_an_awaiting_cell_replaces_the_context(
    client: BlockingKernelClient, manager: KernelManager
) -> None:
    run(client, f"{OPEN}{SPIN}cpu._requests.stop_button.patience_s = 60.0")
    cell = Cell(client, "await cpu.run(spin)")
    cell.until("it runs")
    manager.interrupt_kernel()
    cell.until("it still runs on cpu0: interrupt (■) again within 60 s")
    manager.interrupt_kernel()
    cell.until()
    assert "interrupted again; the context of cpu0 is replaced" in cell.text
    assert run(client, "print(await cpu.run(lambda: 'next'), cpu.generation)") == "next 2\n"


@pytest.mark.parametrize(
    ("sends", "line"),
    [
        ("sent = [cpu.run(time.sleep, 600) for _ in range(20)]", "time.sleep(60)"),
        ("sent = [cpu.run(time.sleep, 600) for _ in range(20)]", "await asyncio.sleep(60)"),
        ("x = array.zeros(cpu, (8, 8), 'f8'); cpu.run(time.sleep, 600)", "while 1: y = x @ x"),
    ],
)
def test_the_stop_button_takes_back_what_a_cell_does_not_wait_for(
    client: BlockingKernelClient, manager: KernelManager, sends: str, line: str
) -> None:
    run(client, f"import asyncio{OPEN}before = cpu.run(lambda: 'before')")
    cell = Cell(client, f"{sends}\nprint('sent')\n{line}")
    cell.until("sent")
    manager.interrupt_kernel()
    cell.until()
    assert cell.text.count("of this cell to cpu0 were cancelled") == 1
    assert cell.text.count("interrupted") == 1
    assert run(client, "print(await before, await cpu.run(lambda: 'next'), cpu.generation)") == (
        "before next 1\n"
    )


def test_what_a_stopped_cell_leaves_running_is_told_of_once(
    client: BlockingKernelClient, manager: KernelManager
) -> None:
    run(client, f"{OPEN}{SPIN}cpu._requests.stop_button.patience_s = 0.5")
    cell = Cell(client, "cpu.run(spin).result()")
    cell.until("it runs")
    manager.interrupt_kernel()
    cell.until()
    assert cell.text.count("interrupted; 1 request of this cell to cpu0 was cancelled") == 1
    assert cell.text.count("still running on cpu0. Stop it with: cpu.replace()") == 1
    assert run(client, "cpu.replace(); print(await cpu.run(lambda: 'next'))") == "next\n"


def test_a_task_that_the_program_cancels_is_no_interrupt(client: BlockingKernelClient) -> None:
    run(client, f"import asyncio{OPEN}{SLOW}")
    said = run(
        client,
        """
async def both():
    other = asyncio.ensure_future(cpu.run(slow))
    try:
        await asyncio.wait_for(cpu.ping(), 0.05)
    except TimeoutError:
        print("in vain")
    other.cancel()
await both()
print(await cpu.run(lambda: "next"))
""",
    )
    assert "interrupted" not in said
    assert said.replace("it runs\n", "") == "in vain\nnext\n"
