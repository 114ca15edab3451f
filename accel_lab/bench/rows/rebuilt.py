"""Rebuilding buffers after a fault, against sending the same messages again by hand."""

import operator
from contextlib import suppress
from functools import partial
from statistics import median
from time import perf_counter
from typing import NamedTuple

from accel_lab.bench.effort import Effort
from accel_lab.bench.peer import Peer
from accel_lab.bench.rounds import compared
from accel_lab.bench.row import Budget, Row
from accel_lab.bench.rows.restarts import LIMIT_S, WINDOW_S, faults_of
from accel_lab.compute.actors.fault import Fault
from accel_lab.compute.device import Device
from accel_lab.compute.events.lifecycle import BuffersRebuilt
from accel_lab.compute.lineage.content_store import key_of
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import ContextLost
from accel_lab.libraries.blas import library as blas
from accel_lab.libraries.rng import library as rng
from accel_lab.system import System

BUFFERS = 20
MESSAGES = 500
FLOAT_BYTES = 4


class Loss(NamedTuple):
    """What the loss of one context cost.

    Attributes:
        error_s: seconds from the fault until its own request was answered.
        result_s: from the fault until there were numbers of a buffer that was made again.
        again_s: of running the messages again, as `BuffersRebuilt` says.
        by_hand_s: of sending them on a device that is up.
        equal: buffers that are equal bit for bit.
    """

    error_s: float
    result_s: float
    again_s: float
    by_hand_s: float
    equal: int


def rebuilt(peer: Peer, effort: Effort) -> list[Row]:
    """Lose contexts of a system of its own; the peer's device is the one that is up."""
    nbytes = effort.nbytes[peer.backend]
    rows: list[Row] = []
    with System(peer.backend, devices=1, recover="replay", within_s=WINDOW_S) as lab:
        buffers, _ = _send(lab.devices[0], nbytes)
        digests = _digests(buffers)
        _by_hand(peer.device, nbytes)
        for fault in faults_of(peer.backend):
            losses = []
            for _ in range(effort.rebuilds):
                by_hand_s = _by_hand(peer.device, nbytes)
                found = _lose(lab, fault, buffers)
                same = map(operator.eq, _digests(buffers), digests)
                losses.append(Loss(*found, by_hand_s, sum(same)))
            rows += _rows(fault, f"{nbytes >> 20} MiB", losses)
    return rows


def _send(device: Device, nbytes: int) -> tuple[list[AccelRef], AccelRef]:
    """Send the messages: draws, and sums of one buffer and the next, so that their order matters.

    Returns:
        the buffers, and the last message's reply.
    """
    size = nbytes // BUFFERS // FLOAT_BYTES
    made = [rng.uniform(device, size, seed=seed) for seed in range(BUFFERS)]
    last = made[-1]
    for number in range(MESSAGES - BUFFERS):
        out = made[number % BUFFERS]
        last = device.ask(blas.Axpy(made[(number + 1) % BUFFERS], out, alpha=0.25, out=out))
    return made, last


def _by_hand(device: Device, nbytes: int) -> float:
    """Send the messages, wait for them, and return the seconds."""
    begin = perf_counter()
    _, last = _send(device, nbytes)
    last.result(LIMIT_S)
    return perf_counter() - begin


def _digests(buffers: list[AccelRef]) -> list[str]:
    """Fetch each buffer and digest what came."""
    return [key_of(ref.get(timeout_s=LIMIT_S).data) for ref in buffers]


def _lose(lab: System, fault: Fault, buffers: list[AccelRef]) -> tuple[float, float, float]:
    """Lose the context; return the first three figures of a `Loss`."""
    mark = lab.events.published
    begin = perf_counter()
    with suppress(ContextLost):
        lab.inject(fault).result(LIMIT_S)
    error_s = perf_counter() - begin
    buffers[-1][:1].get(timeout_s=LIMIT_S)
    result_s = perf_counter() - begin
    fact = lab.events.wait_for(BuffersRebuilt, LIMIT_S, since=mark)
    if (fact.buffers, fact.messages) != (BUFFERS, MESSAGES):
        text = f"{fault} had {fact.messages} messages run again for {fact.buffers} buffers"
        raise RuntimeError(text)
    return error_s, result_s, fact.seconds


def _rows(fault: Fault, size: str, losses: list[Loss]) -> list[Row]:
    again = compared([(loss.by_hand_s, loss.again_s) for loss in losses])
    row = partial(Row, group="rebuilt", rounds=len(losses))
    return [
        row(
            name=f"rebuilt-{fault}-error",
            title=f"{fault} to its error, {size} in use, p50",
            unit="s",
            ours=median(loss.error_s for loss in losses),
        ),
        row(
            name=f"rebuilt-{fault}-result",
            title=f"{fault} to the first result of {size}, p50",
            unit="s",
            ours=median(loss.result_s for loss in losses),
        ),
        Row(
            name=f"rebuilt-{fault}-messages",
            group="rebuilt",
            title=f"{MESSAGES} messages again after {fault}",
            unit="s",
            peer="sent by hand",
            **again._asdict(),
        ),
        row(
            name=f"rebuilt-{fault}-equal",
            title=f"of {BUFFERS} equal bit for bit after {fault}",
            unit="buffers",
            ours=min(loss.equal for loss in losses),
            budget=Budget(BUFFERS, "at least", "ours", "buffers"),
        ),
    ]
