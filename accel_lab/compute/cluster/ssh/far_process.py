"""One connection: the ssh that makes it, what it wrote last, and the greeting over it."""

import os
import subprocess
import threading
import time
from collections import deque
from contextlib import suppress

from accel_lab.compute.cluster.ssh.greeting import (
    MARK,
    Far,
    Hello,
    Welcome,
    read_line,
    write_line,
)
from accel_lab.compute.cluster.ssh.target import Target
from accel_lab.errors import BackendUnavailable

KEPT_BYTES = 8 << 10
LAST_WORDS_S = 1.0


class FarProcess:
    """The ssh to a machine, which ends with the connection; the far side's pipes are its own.

    Parameters:
        program: what runs Python there, where that is known.

    Attributes:
        program: the same, once it has greeted.

    Raises:
        BackendUnavailable: there is no such program here.
    """

    def __init__(self, target: Target, program: str = "") -> None:
        self.program = program
        self._target = target
        self._begun = time.monotonic()
        self._said: deque[bytes] = deque()
        try:
            self._ssh = subprocess.Popen(  # noqa: S603 - what the user named
                target.command(program),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the notebook
            )
        except OSError as error:
            raise BackendUnavailable(
                f"{target.ssh[0]!r} cannot be started: {error.strerror}; install OpenSSH's client, "
                "or name one by System(..., ssh=path)"
            ) from error
        assert self._ssh.stdin is not None
        assert self._ssh.stdout is not None
        self.write_fd, self.read_fd = self._ssh.stdin.fileno(), self._ssh.stdout.fileno()
        for fd in (self.write_fd, self.read_fd):
            os.set_blocking(fd, False)
        self._lock = threading.Lock()
        self._listener = threading.Thread(
            target=self._listen, name=f"accel_lab hears {target.place}", daemon=True
        )
        self._listener.start()

    def greet(self, hello: Hello, until: float) -> Welcome:
        """Begin or resume a session; returns what the far side says of it.

        Parameters:
            until: by the monotonic clock.

        Raises:
            BackendUnavailable: ssh does not get there, or what is there is of no use.
        """
        try:
            far = read_line(self.read_fd, Far, until, MARK)
            self._target.require(far)
            self.program = far.program
        except TimeoutError as error:
            why = f"no answer within {max(1.0, until - self._begun):.0f} s"
            raise self._target.unreached(self._last_words() or why, self._ssh.poll()) from error
        except (EOFError, OSError, ValueError) as error:
            said = self._last_words() or str(error)
            raise self._target.unreached(said, self._ssh.poll()) from error
        try:
            write_line(self.write_fd, hello)
            return read_line(self.read_fd, Welcome, until)
        except (TimeoutError, EOFError, OSError, ValueError) as error:
            said = self._last_words() or str(error) or "it ended, or did not answer in time"
            raise self._target.broken(said, self.program) from error

    def _last_words(self) -> str:
        """Return what ssh wrote last, once it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self._ssh.wait(LAST_WORDS_S)
        self._listener.join(LAST_WORDS_S)
        return b"".join(self._said).decode(errors="replace")

    def close(self) -> None:
        """End ssh; the far side notices. A second call is fine."""
        with self._lock:
            if self._ssh.poll() is None:
                self._ssh.kill()
                self._ssh.wait()

    def release(self) -> None:
        """Close the pipes to ssh."""
        for pipe in (self._ssh.stdin, self._ssh.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()

    def _listen(self) -> None:
        """Keep what ssh writes last, of which the reason is told when it fails."""
        assert self._ssh.stderr is not None
        with suppress(OSError, ValueError):
            while data := os.read(self._ssh.stderr.fileno(), KEPT_BYTES):
                self._said.append(data)
                while sum(map(len, self._said)) > KEPT_BYTES and len(self._said) > 1:
                    self._said.popleft()
        self._ssh.stderr.close()
