"""The entry point on a machine that is reached by ssh: `python -m accel_lab.far_side`.

It says what it is, and hands the pipes of its connection to the process that keeps the contexts,
which it starts when there is none yet. It ends with its connection, that one when it is not wanted.
"""

import os
import select
import signal
import socket
import sys
import time

import msgspec

from accel_lab.compute.cluster.greeting import greeting
from accel_lab.compute.cluster.ssh.greeting import (
    FIRST_LIMIT_S,
    GONE,
    MARK,
    Far,
    Hello,
    Welcome,
    address,
    read_line,
    write_line,
)

STDIN, STDOUT, STDERR = range(3)


def choose(backend: str, devices: int | list[int] | None) -> tuple[str, list[int]]:
    """Return the backend and the devices that are meant, of those of this machine.

    Raises:
        AccelError: there are none such.
    """
    from accel_lab import backends

    name, module = backends.load(backend)
    return name, backends.indices(devices, module.device_count(), name)


def main() -> None:
    """Serve one connection."""
    found = greeting()
    try:
        write_line(STDOUT, Far(found.python, found.accel_lab, sys.executable), MARK)
        hello = read_line(STDIN, Hello, time.monotonic() + FIRST_LIMIT_S)
    except (OSError, EOFError, ValueError):
        return
    if not hello.resumes:
        _start(hello.token)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as keeper:
        try:
            keeper.connect(address(hello.token))
        except OSError:
            write_line(STDOUT, Welcome("the process that kept its contexts has ended", GONE))
            return
        _hand_over(keeper, hello)


def _hand_over(keeper: socket.socket, hello: Hello) -> None:
    """Give the connection away, and wait until it is over."""
    socket.send_fds(keeper, [msgspec.json.encode(hello)], [STDIN, STDOUT])
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (STDIN, STDOUT):
        os.dup2(null, fd)  # from now on it is the keeper's alone
    select.select([keeper], [], [])


def _start(token: str) -> None:
    """Start what keeps the contexts: a process of its own, which no connection ends."""
    # Here, for whoever resumes a session is to be quick, and needs none of it.
    from accel_lab.compute.cluster.ssh.keeper import Keeper
    from accel_lab.compute.process import inherited_signals

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address(token))
    listener.listen()
    if os.fork():
        listener.close()
        return
    status = 1
    try:
        os.setsid()
        inherited_signals.forget()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (STDIN, STDOUT, STDERR):
            os.dup2(null, fd)
        Keeper(listener, choose).run()
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
