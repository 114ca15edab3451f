"""A cell of a real Jupyter kernel, as a front end sees it."""

import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager


@contextmanager
def kernel(source: str) -> Iterator[BlockingKernelClient]:
    """Start one, and run a first cell in it."""
    manager = KernelManager()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        run(client, source)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


class Cell:
    """One that runs, and what it has shown so far.

    Attributes:
        text: what it has printed.
        told: the traceback of what it has raised.
        id: the one by which messages name it.
        outputs: the messages that a front end makes its outputs of, as (type, content).
    """

    def __init__(self, client: BlockingKernelClient, source: str) -> None:
        self.text = self.error = self.told = ""
        self.outputs: list[tuple[str, dict[str, Any]]] = []
        self.ended = False
        self._client = client
        self.id = client.execute(source)

    def until(self, text: str = "", *, outputs: int = 0) -> None:
        """Wait until it has printed a text or has so many outputs, or until it has ended."""
        deadline = time.monotonic() + 60
        while not (
            self.ended or (text and text in self.text) or (outputs and len(self.outputs) >= outputs)
        ):
            assert time.monotonic() < deadline, self.text
            try:
                message = self._client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != self.id:
                continue
            content = message["content"]
            self.text += content.get("text", "")
            self.error += content.get("ename", "")
            self.told += "\n".join(content.get("traceback", ()))
            if message["msg_type"] not in ("status", "execute_input"):
                self.outputs.append((message["msg_type"], content))
            self.ended |= content.get("execution_state") == "idle"
        assert text in self.text

    def stop(self) -> None:
        """Press the stop button."""
        message = self._client.session.msg("interrupt_request", {})
        self._client.control_channel.send(message)


def ran(client: BlockingKernelClient, source: str) -> Cell:
    """Return a cell that has ended, however it did."""
    cell = Cell(client, source)
    cell.until()
    return cell


def run(client: BlockingKernelClient, source: str) -> str:
    """Return what a cell has printed that has not failed."""
    cell = ran(client, source)
    assert not cell.error, cell.told
    return cell.text
