"""A cell of a real Jupyter kernel, as a front end sees it."""

import queue
import time

from jupyter_client.blocking.client import BlockingKernelClient


class Cell:
    """One that runs, and what it has shown so far."""

    def __init__(self, client: BlockingKernelClient, source: str) -> None:
        self.text = self.error = ""
        self.ended = False
        self._client = client
        self._id = client.execute(source)

    def until(self, text: str = "") -> None:
        """Wait until it has shown a text, or until it has ended."""
        deadline = time.monotonic() + 60
        while not (self.ended or (text and text in self.text)):
            assert time.monotonic() < deadline, self.text
            try:
                message = self._client.get_iopub_msg(timeout=1)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != self._id:
                continue
            content = message["content"]
            self.text += content.get("text", "")
            self.error += content.get("ename", "")
            self.ended |= content.get("execution_state") == "idle"
        assert text in self.text


def run(client: BlockingKernelClient, source: str) -> str:
    cell = Cell(client, source)
    cell.until()
    assert not cell.error
    return cell.text
