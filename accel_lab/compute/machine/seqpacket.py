"""Packets with descriptors over a SEQPACKET socket.

`socket.send_fds` and `recv_fds` would do, but CPython's ignore their flags.
"""

import array
import socket

PACKET_BYTES = 64 << 10
RIGHTS_BYTES = socket.CMSG_SPACE(8 * 4)  # of up to eight descriptors


def send(channel: socket.socket, data: bytes, fds: list[int]) -> None:
    """Send one packet with its descriptors; raises OSError when the other end is gone."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    channel.sendmsg([data], rights, socket.MSG_NOSIGNAL)


def receive(channel: socket.socket, *, block: bool) -> tuple[bytes, list[int]] | None:
    """Return the next packet with its descriptors, None when there is none and `block` is false.

    Raises:
        EOFError: the other end is gone.
    """
    flags = socket.MSG_CMSG_CLOEXEC | (0 if block else socket.MSG_DONTWAIT)
    try:
        data, ancillary, _, _ = channel.recvmsg(PACKET_BYTES, RIGHTS_BYTES, flags)
    except BlockingIOError:
        return None
    except ConnectionResetError:
        # The other end is gone and had not read all; it is told once, before what it last said.
        return receive(channel, block=block)
    except OSError as error:
        raise EOFError from error
    if not data:
        raise EOFError
    fds = array.array("i")
    for _, _, payload in ancillary:
        fds.frombytes(payload)
    return data, list(fds)
