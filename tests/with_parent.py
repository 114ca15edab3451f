"""Start a program that ends together with whoever started it, however that one ends.

A pytest that is killed closes nothing; its servers would go on by themselves.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def with_parent(*program: str) -> list[str]:
    """Return the command that starts `program` so, for `subprocess.Popen` in the main thread."""
    return [sys.executable, __file__, str(os.getpid()), *program]


def main(parent: int, *program: str) -> None:
    """Become the program, which gets SIGTERM when the thread that started it has ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() == parent:
        os.execvp(program[0], program)  # noqa: S606 - the test's own


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
