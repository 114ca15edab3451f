"""What the driver says of the card's memory; the tests that ask have the card for themselves."""

import time

import pynvml

SLACK_BYTES = 8 << 20
SETTLED_S = 0.5
WAIT_S = 30.0


def card_bytes() -> int:
    """Return what is in use, once it no longer falls: contexts of earlier tests may be leaving."""
    until, now = time.monotonic() + WAIT_S, _used()
    while time.monotonic() < until:
        time.sleep(SETTLED_S)
        before, now = now, _used()
        if now >= before:
            break
    return now


def assert_used_at_most(before: int) -> None:
    """Wait until no more is in use than before; the driver frees a dead process's in its time."""
    until = time.monotonic() + WAIT_S
    while (now := _used()) > before + SLACK_BYTES:
        assert time.monotonic() < until, f"{now - before} bytes outlive their owner"
        time.sleep(0.05)


def _used() -> int:
    pynvml.nvmlInit()
    return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used)
