"""The process in which a peer's caller lives: `python -m tests.benchmarks.peers.worker NAME`.

It takes orders from its standard input and writes answers to its standard output; what the peer
prints goes to standard error. It stops the peer when its input ends.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from time import perf_counter

from tests.benchmarks.peers.catalogue import peer_of
from tests.benchmarks.peers.orders import (
    Answer,
    Ask,
    Asked,
    Failed,
    Started,
    Tell,
    Told,
    line,
    order,
)
from tests.benchmarks.peers.runtime import Runtime

LINE_BYTES = 1 << 16


async def serve(
    runtime: Runtime, found: str, orders: asyncio.StreamReader, send: Callable[[Answer], None]
) -> None:
    """Start a peer, carry out orders until there are no more, and stop the peer."""
    told = 0
    try:
        await runtime.start()
        await runtime.ask()
        send(Started(found))
        while text := await orders.readline():
            match order.decode(text):
                case Ask(count):
                    send(Asked(await ask(runtime, count)))
                case Tell(count):
                    told += count
                    send(await tell(runtime, count, told))
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is its answer
        send(Failed(f"{type(error).__name__}: {error}"))
    finally:
        await runtime.stop()


async def ask(runtime: Runtime, count: int) -> list[float]:
    """Measure single asks."""
    seconds = []
    for _ in range(count):
        begin = perf_counter()
        await runtime.ask()
        seconds.append(perf_counter() - begin)
    return seconds


async def tell(runtime: Runtime, count: int, told: int) -> Told:
    """Measure messages that nobody waits for; `told` is the actor's count after the last."""
    begin = perf_counter()
    await runtime.tell_many(count)
    sent = perf_counter()
    while await runtime.ask() < told:
        pass
    return Told(sent - begin, perf_counter() - begin)


async def main(name: str) -> None:
    """Serve the orders of standard input."""
    peer = peer_of(name)
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    input_ = os.fdopen(os.dup(0), "rb", buffering=0)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    orders = asyncio.StreamReader(LINE_BYTES)
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), input_)

    def send(answer: Answer) -> None:
        answers.write(line(answer))

    try:
        await serve(
            peer.make(),
            version(peer.package),
            orders,
            send,
        )
    finally:
        pipe.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
