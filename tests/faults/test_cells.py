"""In a real Jupyter kernel, what a context prints and what fails alone shows under its cell."""

import queue
import time
from collections.abc import Iterator

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

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
def client() -> Iterator[BlockingKernelClient]:
    manager = KernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


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
    assert "OutOfMemory: 4194304 bytes were asked for" in shown["fail"]
    opened = shown["open"].replace("accel_lab: starting cpu0…\n", "")  # on a slow machine
    assert (opened, shown["later"]) == ("", "here\n")
