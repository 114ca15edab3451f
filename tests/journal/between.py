"""What stands between a client and its server, and can be gone, hold answers back, or answer."""

import contextlib
import select
import socket
import threading
from collections.abc import Callable
from typing import Self

from tests.ports import free_port


class Between:
    """A port that leads to another.

    Attributes:
        mute: whether the answers of the server are thrown away from now on.
        answer: answers in place of the server, if it is set; with nothing as long as what was
            asked is not whole.
    """

    def __init__(self, port: int) -> None:
        self.port = free_port()
        self.mute = False
        self.answer: Callable[[bytes], bytes] | None = None
        self._to = port
        self._ends: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.come()

    def come(self) -> None:
        """Listen."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def go(self) -> None:
        """Be gone, with every connection."""
        listener, self._listener = self._listener, None
        for end in (*filter(None, (listener,)), *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._ends.clear()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [client, server]
                threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        asked = b""
        with contextlib.suppress(OSError, ValueError), client, server:
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for end in ready:
                    data = end.recv(1 << 16)
                    if not data:
                        return
                    if end is server and not self.mute:
                        client.sendall(data)
                    elif end is client and (self.answer is not None or asked):
                        asked += data
                        if told := self.answer(asked) if self.answer else b"":
                            client.sendall(told)
                            asked = b""
                    elif end is client:
                        server.sendall(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.go()
