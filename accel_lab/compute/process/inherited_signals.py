"""Reset what a process inherits of its parent's signals and should not."""

import signal

_KEPT = {signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ}
"""What `nohup` ignores, what the terminal gives to everybody, and what Python ignores itself."""


def forget() -> None:
    """Block no signal, and ignore none that the parent ignores; the main thread.

    Who ignores SIGCHLD cannot learn how a child ended, and what blocks SIGUSR1 cannot interrupt.
    """
    for number in signal.valid_signals() - _KEPT:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
