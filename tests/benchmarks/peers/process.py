"""A peer as the benchmark sees it: a process that is asked to measure itself."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Self, TypeVar

from tests.benchmarks.peers.catalogue import Peer
from tests.benchmarks.peers.orders import (
    Answer,
    Ask,
    Asked,
    Failed,
    Order,
    Started,
    Tell,
    Told,
    line,
)
from tests.benchmarks.peers.orders import answer as decoder
from tests.project import ROOT

# The worker and the processes that a peer starts import this package from the checkout.
PATH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
# By its path it starts without importing accel_lab; -P, because its folder has a `ray.py`.
GUARD = (sys.executable, "-P", str(Path(__file__).with_name("guard.py")))
WORKER = (sys.executable, "-m", "tests.benchmarks.peers.worker")
STOP_S = 20.0
LAST_WORDS = 2000

A = TypeVar("A", bound=Answer)


class PeerFailed(Exception):
    """A peer could not be measured."""


class PeerProcess:
    """A running peer; as a context manager it leaves no process and no file behind.

    Starting blocks until the peer's actor answers: under a second, for Ray about ten.

    Raises:
        PeerFailed: the peer does not start, or raised; with its last words.
    """

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._said: IO[bytes] = TemporaryFile()  # noqa: SIM115 - `close` closes it
        # A session of its own: Ctrl-C ends the benchmark, and the benchmark ends the peer.
        self._guard = subprocess.Popen(
            [*GUARD, *WORKER, peer.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env=os.environ | {"PYTHONPATH": PATH},
            start_new_session=True,
        )
        try:
            self.version = self._next(Started).version
        except BaseException:
            self.close(at_once=True)
            raise

    @property
    def pid(self) -> int:
        """The process above all of the peer's."""
        return self._guard.pid

    def ask(self, count: int) -> list[float]:
        """Return the seconds of so many asks, one after another; blocks for all of them."""
        return self._order(Ask(count), Asked).seconds

    def tell(self, count: int) -> Told:
        """Return the seconds that so many tells took to send, and to be taken; blocks for both."""
        return self._order(Tell(count), Told)

    def close(self, *, at_once: bool = False) -> None:
        """Stop the peer and wait until its last process is gone.

        Kills it when stopping takes long, or `at_once`.
        """
        try:
            with suppress(BrokenPipeError):
                self._pipe(self._guard.stdin).close()
            if not at_once:
                self._guard.wait(STOP_S)
        except subprocess.TimeoutExpired:
            pass  # it is killed
        finally:
            self._guard.terminate()
            self._guard.wait()
            self._pipe(self._guard.stdout).close()
            self._said.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(at_once=error is not None)

    def _order(self, order: Order, kind: type[A]) -> A:
        pipe = self._pipe(self._guard.stdin)
        with suppress(BrokenPipeError):  # then there is no answer either
            pipe.write(line(order))
            pipe.flush()
        return self._next(kind)

    def _next(self, kind: type[A]) -> A:
        text = self._pipe(self._guard.stdout).readline()
        answer = decoder.decode(text) if text else Failed("it ended")
        if isinstance(answer, kind):
            return answer
        assert isinstance(answer, Failed)
        self._said.seek(0)
        said = self._said.read()[-LAST_WORDS:].decode(errors="replace").strip()
        raise PeerFailed(f"{self.peer.title}: {answer.text}{': ' if said else ''}{said}")

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe
