"""The terminal, driven by Textual's own pilot, on a system of another process."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("textual") is None:
    pytest.skip("textual comes with the observability extra", allow_module_level=True)

from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from accel_lab import System
from accel_lab.top.looker import Looker
from accel_lab.top.terminal import Stack, Top

SIZE = (120, 60)


def cells(app: Top, name: str) -> list[list[str]]:
    table = app.query_one(f"#{name}", DataTable)
    return [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]


def headline(app: Top) -> str:
    return str(app.query_one("#headline", Static).content)


def row_of(app: Top, actor: str) -> str:
    return next((" ".join(row) for row in cells(app, "actors") if row[0].strip() == actor), "")


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await pilot.pause(0.05)


async def test_it_shows_the_tree_work_and_faults_as_they_come_and_the_next_system(
    runtime: Path,
) -> None:
    with Looker(300.0) as looker:
        app = Top(looker)
        async with app.run_test(size=SIZE) as pilot:
            assert headline(app) == "no system"
            assert not app.query_one("#systems").display
            await pilot.press("s", "n")  # nothing to show, and nothing breaks
            with System("host", 1, name="first") as first:
                await until(pilot, lambda: "running g1" in row_of(app, "cpu0"))
                assert cells(app, "systems")[0][0] == "▸ first"
                assert headline(app) == "1 of 1 systems run"
                first.devices[0].run(time.sleep, 60)
                await until(pilot, lambda: cells(app, "kernels"))
                assert cells(app, "kernels")[0][:2] == ["sleep", "cpu0/run"]
                context = row_of(app, "context").split()[-1]
                os.kill(int(context), signal.SIGKILL)
                await until(pilot, lambda: cells(app, "faults"))
                assert cells(app, "faults")[0][1:3] == ["cpu0", "context lost"]
                await until(pilot, lambda: "context lost" in headline(app))
                with System("host", 1, name="second"):
                    await until(pilot, lambda: len(cells(app, "systems")) == 2)
                    assert shown(app) == "first"  # what one looks at stays
                    await pilot.press("n")
                    assert shown(app) == "second"
                    assert cells(app, "faults") == []
                    await pilot.press("n")
                    assert shown(app) == "first"
            await pilot.press("q")
        assert app.return_code == 0


def shown(app: Top) -> str:
    assert app.system is not None
    return app.system.name


async def test_it_shows_what_the_python_of_a_context_is_at(
    lab: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """py-spy is the edge: whether it may trace a process is the machine's affair."""
    asked: list[int] = []

    def told(pid: int) -> str:
        asked.append(pid)
        return f"stack of {pid}"

    monkeypatch.setattr("accel_lab.top.terminal.stacks", told)
    with Looker(300.0) as looker:
        app = Top(looker)
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: "running" in row_of(app, "context"))
            await pilot.press("s")  # the cursor is on the system
            await pilot.pause()
            assert asked == []
            pid = lab.tree().children[0].children[0].pid
            for _ in range(2):
                await pilot.press("down")
                await pilot.press("s")
                await until(pilot, lambda: isinstance(app.screen, Stack))
                assert f"stack of {pid}" in str(app.screen.query_one("#stack", Static).content)
                await pilot.press("escape")
                await until(pilot, lambda: not isinstance(app.screen, Stack))
            assert asked == [pid, pid]
