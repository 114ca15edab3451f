"""The stop button while a cell awaits, in a real kernel: it ends as one that blocks."""

import re
from collections.abc import Iterator

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from tests.kernel import Cell, kernel, ran, run

OPEN = """
import asyncio, time
from accel_lab import System
lab = System("host").ready()
cpu = lab.devices[0]
def slow():
    print("runs")
    while True: time.sleep(0.01)
async def mine(): return await cpu.run(slow)
async def each():
    while True: yield await cpu.run(slow)
async def group():
    async with asyncio.TaskGroup() as tasks: tasks.create_task(mine())
async def soon():
    async with asyncio.timeout(600): await mine()
"""
SHELL = "get_ipython()"


@pytest.fixture(scope="module")
def client() -> Iterator[BlockingKernelClient]:
    with kernel(OPEN) as client:
        yield client


def stopped(client: BlockingKernelClient, source: str) -> Cell:
    """Stop a cell that has printed `runs`."""
    cell = Cell(client, source)
    cell.until("runs")
    cell.stop()
    cell.until()
    return cell


def told(cell: Cell) -> str:
    """Return a cell's traceback, without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", cell.told)


@pytest.mark.parametrize(
    ("source", "functions"),
    [
        ("await cpu.run(slow)", []),
        ("await asyncio.gather(mine(), cpu.ping())", ["mine"]),
        ("await asyncio.wait_for(cpu.run(slow), 600)", []),
        ("await asyncio.wait([asyncio.ensure_future(mine())])", []),
        ("await group()", ["group"]),
        ("await soon()", ["soon", "mine"]),
        ("async for answer in each(): pass", ["each"]),
        ("sent = cpu.run(slow)\nawait asyncio.sleep(600)", []),
    ],
)
def test_a_stopped_cell_shows_its_own_lines_only(
    client: BlockingKernelClient, source: str, functions: list[str]
) -> None:
    cell = stopped(client, source)
    assert cell.text.count("accel_lab: interrupted; ") == 1
    assert re.search(r"of this cell to cpu0 (was|were) cancelled\.\n", cell.text)
    assert cell.error == "KeyboardInterrupt"
    assert told(cell).splitlines()[-1] == "KeyboardInterrupt: "
    assert re.findall(r"^(?:File|Cell) .*, in (\w+)", told(cell), re.MULTILINE) == functions
    assert "---> " in told(cell)
    assert not re.search("asyncio/|accel_lab/|CancelledError", told(cell))
    reply = client.get_shell_msg(timeout=10)
    while reply["parent_header"]["msg_id"] != cell.id:
        reply = client.get_shell_msg(timeout=10)
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    assert run(client, "print(cpu.generation, await cpu.run(lambda: 'next'))") == "1 next\n"


def test_the_code_of_a_stopped_cell_sees_what_asyncio_has(client: BlockingKernelClient) -> None:
    cell = stopped(
        client,
        """
task = asyncio.ensure_future(mine())
try:
    await task
except asyncio.CancelledError as error:
    print("seen", type(error) is asyncio.CancelledError, task.cancelled())
    raise
""",
    )
    assert "seen True True\n" in cell.text
    assert cell.error == "KeyboardInterrupt"


def test_a_cell_that_goes_on_has_not_ended(client: BlockingKernelClient) -> None:
    cell = stopped(
        client,
        "try: await mine()\nexcept asyncio.CancelledError: print(await cpu.run(lambda: 'goes on'))",
    )
    assert not cell.error
    assert cell.text.endswith("goes on\n")


def test_a_task_that_the_program_cancels_ends_as_asyncio_has_it(
    client: BlockingKernelClient,
) -> None:
    cell = ran(
        client,
        """
other = asyncio.ensure_future(mine())
asyncio.get_running_loop().call_later(0.3, other.cancel)
await other
""",
    )
    assert cell.error == "CancelledError"
    assert "reply.py" in told(cell)
    assert "interrupted" not in cell.text
    cell = ran(client, "await asyncio.wait_for(mine(), 0.3)")
    assert cell.error == "TimeoutError"
    cell = ran(client, "async with asyncio.timeout(0.3): await mine()")
    assert cell.error == "TimeoutError"
    assert "interrupted" not in cell.text


def test_a_cell_that_has_sent_nothing_is_shown_as_the_notebook_does(
    client: BlockingKernelClient,
) -> None:
    cell = stopped(client, "print('runs')\nawait asyncio.sleep(600)")
    assert cell.error == "CancelledError"
    assert "asyncio/tasks.py" in told(cell)
    assert "accel_lab" not in cell.text


def test_what_the_user_shows_himself_stays_his(client: BlockingKernelClient) -> None:
    print_it = "lambda shell, kind, *_, **__: print('mine:', kind.__name__)"
    before = run(client, f"print({SHELL}.custom_exceptions)")
    run(client, f"{SHELL}.set_custom_exc((LookupError,), {print_it})")
    assert stopped(client, "await mine()").error == "KeyboardInterrupt"
    assert ran(client, "await cpu.ping()\n{}[1]").text == "mine: KeyError\n"
    assert ran(client, "{}[1]").text == "mine: KeyError\n"
    cell = stopped(client, f"{SHELL}.set_custom_exc((BaseException,), {print_it})\nawait mine()")
    assert cell.text.endswith("mine: CancelledError\n")
    assert stopped(client, "await mine()").text.endswith("mine: CancelledError\n")
    run(client, f"{SHELL}.set_custom_exc((), None)")
    assert run(client, f"await cpu.ping(); print({SHELL}.custom_exceptions)") != before
    assert run(client, f"print({SHELL}.custom_exceptions)") == before == "()\n"
