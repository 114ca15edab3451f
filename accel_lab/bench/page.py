"""A page that shows widgets, as a kernel sees it: a process that takes what the kernel publishes.

Messages are serialised and signed by ipykernel's own session and sent by a thread, as in a kernel.
Only what lies behind the socket is missing: the server and the browser. It needs the packages of
the `lab` extra.
"""

import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any, Self

_CLIENT = """
import json, sys, zmq
socket = zmq.Context().socket(zmq.SUB)
socket.subscribe(b"")
socket.connect(sys.argv[1])
heard = 0
while len(frames := socket.recv_multipart()) > 1:
    heard += json.loads(frames[3])["msg_type"] == "comm_msg"
print(heard)
"""


def there_can_be_pages() -> bool:
    """Whether the packages are here."""
    return all(map(find_spec, ("anywidget", "ipykernel")))


class Page:
    """Takes what widgets send; a context manager.

    Attributes:
        heard: how many updates arrived; known at the end.
    """

    def __init__(self) -> None:
        import zmq
        from jupyter_client.session import Session

        self.heard = 0
        self._session: Any = Session(key=b"of a benchmark")
        self._context: Any = zmq.Context()
        self._socket = self._context.socket(zmq.XPUB)
        port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self._client = subprocess.Popen(  # noqa: S603 - itself
            [sys.executable, "-c", _CLIENT, f"tcp://127.0.0.1:{port}"], stdout=subprocess.PIPE
        )
        self._socket.recv()  # it has subscribed
        self._sent: SimpleQueue[Sequence[Any]] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="accel_lab page", daemon=True)
        self._thread.start()

    def show(self, widget: Any) -> None:
        """Have a widget send to this page what it would send to one of its kernel."""
        from comm.base_comm import BaseComm

        publish = self._publish

        class Comm(BaseComm):
            def publish_msg(
                self,
                msg_type: str,
                data: Any = None,
                metadata: Any = None,
                buffers: Any = None,
                **keys: Any,
            ) -> None:
                content = {"data": data or {}, "comm_id": self.comm_id} | keys
                publish(msg_type, content, metadata or {}, buffers)

        widget.comm = Comm(target_name="jupyter.widget")
        widget.send_state()

    def send_multipart(self, frames: Sequence[Any], **_: Any) -> None:
        """Send frames soon; what a session asks of a socket."""
        self._sent.put(frames)

    def _publish(self, kind: str, content: Any, metadata: Any, buffers: Any) -> None:
        """Send a message as ipykernel's comm does; in the thread of whoever sends it."""
        from ipykernel import jsonutil

        clean: Any = jsonutil.json_clean
        content, metadata = clean(content), clean(metadata)
        self._session.send(self, kind, content, metadata=metadata, ident=b"comm", buffers=buffers)

    def _run(self) -> None:
        while frames := self._sent.get():
            self._socket.send_multipart(frames)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sent.put([b"the end"])
        self._sent.put([])
        self._thread.join()
        self.heard = int(self._client.communicate()[0])
        self._socket.close()
        self._context.term()
