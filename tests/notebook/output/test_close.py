"""What a notebook is told when a system is closed that still works, in a real kernel."""

from collections.abc import Iterator

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from tests.kernel import kernel, run

IMPORTS = "import time\nfrom accel_lab import System\n"
OPEN = 'lab = System("host").ready()\ncpu = lab.devices[0]\n'


@pytest.fixture(scope="module")
def client() -> Iterator[BlockingKernelClient]:
    with kernel(IMPORTS) as client:
        yield client


@pytest.mark.parametrize(
    ("sends", "ended"),
    [
        ("sent = cpu.run(time.sleep, 600)", "1 request to cpu0 did not finish"),
        (
            "sent = [cpu.run(time.sleep, 600), cpu.run(len, '')]",
            "2 requests to cpu0 did not finish",
        ),
    ],
)
def test_closing_says_what_it_ends(client: BlockingKernelClient, sends: str, ended: str) -> None:
    run(client, OPEN)
    assert run(client, f"{sends}\nlab.close()") == f"accel_lab: closed; {ended}.\n"
    assert run(client, "lab.close()") == ""


@pytest.mark.parametrize(
    "sends", ["", "x = cpu.put([1.0]); x.result()", "told = cpu.run(len, ''); time.sleep(1)"]
)
def test_closing_says_nothing_where_nothing_runs(client: BlockingKernelClient, sends: str) -> None:
    run(client, OPEN)
    assert run(client, f"{sends}\nlab.close()") == ""
