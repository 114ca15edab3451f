"""What a view's button does while the kernel is at a cell."""

from collections.abc import Iterator

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.kernel import Cell, run

pytest.importorskip("anywidget", reason="anywidget comes with the lab extra")

OPEN = """
import asyncio, time
from accel_lab import System, views
from accel_lab.compute.events.lifecycle import ContextLost
lab = System("host", 1).ready()
view = views.supervision(lab)
def losses():
    return len(lab.events.history(ContextLost))
async def see(count):
    until = time.monotonic() + 60
    while losses() < count and time.monotonic() < until:
        await asyncio.sleep(0.01)
    print(f"{losses()} seen")
print(view.comm.comm_id)
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


def press(client: BlockingKernelClient, comm: str) -> None:
    """Send what the button *inject* sends."""
    content = {"do": "inject", "device": "cpu0", "fault": "kill"}
    data = {"method": "custom", "content": content}
    message = client.session.msg("comm_msg", {"comm_id": comm, "data": data})
    client.shell_channel.send(message)


def test_a_button_works_while_a_cell_awaits_and_queues_while_one_blocks(
    client: BlockingKernelClient,
) -> None:
    comm = run(client, OPEN).splitlines()[-1]  # it may have been told of a slow start
    awaiting = Cell(client, "print('waits'); await see(1)")
    awaiting.until("waits")
    press(client, comm)
    awaiting.until()
    assert awaiting.text == "waits\n1 seen\n"
    blocking = Cell(client, "print('blocks'); time.sleep(3); print(losses())")
    blocking.until("blocks")
    press(client, comm)
    blocking.until()
    assert blocking.text == "blocks\n1\n"
    assert run(client, "await see(2)") == "2 seen\n"
