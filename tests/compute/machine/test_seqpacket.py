"""Packets arrive, also those of an end that is gone."""

import socket

import pytest

from accel_lab.compute.machine import seqpacket


def test_what_an_end_said_last_is_heard_though_it_had_not_read_all() -> None:
    """A zygote that cannot load says why and ends, perhaps while it is asked for a context."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here:
        seqpacket.send(here, b"fork", [])
        seqpacket.send(there, b"it cannot be loaded", [])
        there.close()
        assert seqpacket.receive(here, block=False) == (b"it cannot be loaded", [])
        with pytest.raises(EOFError):
            seqpacket.receive(here, block=False)
