"""Many requests from several threads, while contexts are killed: each is answered once."""

import threading
from collections.abc import Callable
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.blueprints.patterns import Statistics
from accel_lab.errors import AccelError

WAIT = 60.0


def load(send: Callable[[int], Reply[Any]], count: int, threads: int = 4) -> dict[int, Any]:
    """Send `count` values, each by one of the threads; return the answer or failure of each."""
    found: dict[int, Any] = {}
    twice: list[int] = []

    def client(first: int) -> None:
        replies = [(number, send(number)) for number in range(first, count, threads)]
        for number, reply in replies:
            try:
                outcome = reply.result(WAIT)
            except AccelError as error:
                outcome = error
            if number in found:
                twice.append(number)
            found[number] = outcome

    clients = [threading.Thread(target=client, args=(first,)) for first in range(threads)]
    for one in clients:
        one.start()
    for one in clients:
        one.join(2 * WAIT)
    assert not twice
    assert sorted(found) == list(range(count))
    return found


def adds_up(found: Statistics) -> bool:
    """Whether each request that was asked is counted once."""
    over = found.answered + found.failed + found.expired + found.cancelled + found.refused
    return found.asked == over + found.waiting + found.running
