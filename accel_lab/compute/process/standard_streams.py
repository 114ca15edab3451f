"""The three standard streams, which a daemon may have closed."""

import os

LAST = 2


def occupy() -> None:
    """Open what is closed of descriptors 0, 1 and 2 on `/dev/null`.

    Otherwise a socket of ours gets such a number, and whatever writes an error there, as C
    libraries do, writes into it. A child takes them over.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= LAST:
        os.set_inheritable(fd, True)  # noqa: FBT003 - it takes no names
    os.close(fd)
