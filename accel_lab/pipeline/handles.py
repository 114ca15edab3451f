"""Handles and replies in what stages pass on, be they alone or in tuples, lists and dicts."""

import asyncio
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.pipeline.stage import NO_WORK


def replies_in(value: Any) -> Iterator[Reply[Any]]:
    """Yield every reply and handle of a value; never blocks."""
    if isinstance(value, Reply):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from replies_in(one)
    elif type(value) is dict:
        for one in value.values():
            yield from replies_in(one)


def exchanged(value: Any, change: Callable[[Reply[Any]], Any]) -> Any:
    """Return a value with something else in place of each reply; one without is returned itself."""
    if isinstance(value, Reply):
        return change(value)
    if next(replies_in(value), None) is None:
        return value
    if type(value) is dict:
        return {key: exchanged(one, change) for key, one in value.items()}
    parts = [exchanged(one, change) for one in value]
    if isinstance(value, list):
        return parts
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


async def settled(value: Any) -> Any:
    """Wait until all of a value is computed; return it with answers in place of replies.

    A handle's answer is the handle. All are waited for, also when one fails, so that nobody else
    hears of a failure; the first one's is raised.
    """
    replies = list(replies_in(value))
    if not replies:
        return value
    if value is replies[0]:
        return await replies[0]
    waits = [_answer(one) for one in replies]
    outcomes = await asyncio.gather(*waits, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    answers = iter(outcomes)
    return exchanged(value, lambda _: next(answers))


async def _answer(reply: Reply[Any]) -> Any:
    return await reply


def moved(value: Any, device: Device | None) -> Any:
    """Return a value with its buffers on a device; the copies can be used at once.

    Raises:
        InvalidArgument: an object that is no array is on another device.
    """

    def move(reply: Reply[Any]) -> Any:
        if not isinstance(reply, Ref) or device is None or reply.device is device:
            return reply
        if not isinstance(reply, AccelRef):
            raise InvalidArgument(
                f"{reply!r} cannot be copied to {device.name}: have both stages use one device"
            )
        copied = device.put(reply)
        _hear(copied)  # what uses it fails, too, and is heard
        return copied

    return exchanged(value, move)


def is_lost(value: Any) -> bool:
    """Whether a value has a handle of what is gone, or out of reach; never blocks."""
    refs = (one for one in replies_in(value) if isinstance(one, Ref))
    return any(not one.is_valid or one.device.state in NO_WORK for one in refs)


async def is_there(value: Any) -> bool:
    """Whether no handle of a value is lost; waits for devices that rebuild what they held."""
    refs = [one for one in replies_in(value) if isinstance(one, Ref)]
    for device in {one.device for one in refs if one.generation != one.device.generation}:
        with suppress(AccelError):  # it is lost again, and what it held
            await device.ping()
    return not is_lost(value)


def let_go(value: Any) -> None:
    """Take back what nobody takes any more, and hear of its failures."""
    for reply in replies_in(value):
        _hear(reply)
        reply.cancel()
    if asyncio.iscoroutine(value):
        value.close()


def _hear(reply: Reply[Any]) -> None:
    """Take a failure in place of somebody who awaits; does not hold the reply."""
    reply.add_waiter(partial(_take, weakref.ref(reply)))


def _take(known: "weakref.ref[Reply[Any]]") -> None:
    reply = known()
    if reply is not None and reply.error is not None:
        reply.error.take()
