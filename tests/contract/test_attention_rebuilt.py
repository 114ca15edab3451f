"""Attention and caches are there again after their context was killed amid their work."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accel_lab import AccelRef, System, attention
from accel_lab.actor.reply import Reply
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.device import Device
from accel_lab.compute.events.lifecycle import BuffersRebuilt
from accel_lab.errors import ContextLost
from accel_lab.journal.replay.replay import Replayed, replay
from tests.contract import attentions
from tests.contract.samples import assert_same, reals, value

WAIT_S = 60.0


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


def killed(lab: System, device: Device) -> Any:
    """Kill the context, and wait until all is there again."""
    mark = lab.events.published
    with pytest.raises(ContextLost):
        device.ask(Inject("kill")).result(WAIT_S)
    fact = lab.events.wait_for(BuffersRebuilt, WAIT_S, since=mark)
    assert isinstance(fact, BuffersRebuilt)
    assert fact.lost == 0
    return fact


def every_result(q: AccelRef, k: AccelRef, sink: AccelRef, lengths: AccelRef) -> list[AccelRef]:
    """Send messages of every kind, of which one feeds another."""
    options: dict[str, Any] = {"causal": "bottom_right", "window": 9, "rate": 0.2, "seed": 3}
    y, lse = attention.attend(q, k, k, lengths_k=lengths, sink=sink, lse=True, **options)
    assert lse is not None
    back = attention.attend_gradient(
        q, k, k, y, lse, y, lengths_k=lengths, sink=sink, sink_gradient=True, **options
    )
    assert back.sink is not None
    cache = attention.KVCache(q.device, heads=2, width=8, pages=16, page_size=4)
    cache.append(k, back.k, (0, 1))
    cache.fork(1, 2)
    cache.append(k, k, (2, 3))
    cache.evict(2, keep=9)
    cache.evict(0)
    attended = cache.attend(q, (2, 3), sink=sink, lse=True)
    assert attended.lse is not None
    counts = attention.cache_statistics(cache.handle)
    return [y, lse, *back[:3], back.sink, attended.y, attended.lse, counts]


def test_results_around_a_kill_are_what_they_would_have_been(lab: System) -> None:
    (device,) = lab.devices
    q, k, sink = (
        device.put(reals(seed, shape, "float32"))
        for seed, shape in enumerate([(2, 4, 12, 8), (2, 2, 12, 8), (4,)])
    )
    lengths = device.put(np.array([12, 7]))
    calm = [value(device, ref) for ref in every_result(q, k, sink, lengths)]
    generation = device.generation
    before = every_result(q, k, sink, lengths)
    lost = device.ask(Inject("kill"))
    after = every_result(q, k, sink, lengths)
    with pytest.raises(ContextLost):
        lost.result(timeout_s=WAIT_S)
    for made in (before, after):
        for ref, expected in zip(made, calm, strict=True):
            assert_same(value(device, ref), expected)
    assert device.generation == generation + 1


def test_a_journal_makes_every_result_again(backend: Any) -> None:
    name = backend.__name__.rpartition(".")[2]
    with System(name, devices=1, results="values") as source:
        (device,) = source.devices
        q, k, sink = (
            device.put(reals(seed, shape, "float32"))
            for seed, shape in enumerate([(2, 4, 12, 8), (2, 2, 12, 8), (4,)])
        )
        for ref in every_result(q, k, sink, device.put(np.array([12, 7]))):
            ref.result(WAIT_S)
        found: list[tuple[str, str]] = []

        def count(done: Replayed) -> None:
            assert done.what != "failed", done
            if done.comparison is not None:
                found.append((done.entry.name, done.comparison.verdict))

        with System(name, devices=1, journal=None) as again:
            report = replay(source.journal, again, on_step=count)
    assert (report.failed, report.not_run, report.damage) == ([], [], "")
    assert {name for name, _ in found} >= {"Attend", "AttendGradient", "CacheAttend"}
    assert {verdict for _, verdict in found} == {"equal"}


@pytest.mark.parametrize("kept", [True, False])
def test_a_decode_loop_goes_on_after_kills(lab: System, *, kept: bool) -> None:
    (device,) = lab.devices
    k, v = (reals(seed, (1, 2, 40, 8), "float64") for seed in range(2))
    q = reals(3, (1, 4, 40, 8), "float64")
    exact, _ = attentions.attention(q, k, v, causal="top_left")
    cache = attention.KVCache(device, heads=2, width=8, pages=11, page_size=4, dtype="float64")

    def append(part: slice) -> Reply[None]:
        return cache.append(device.put(k[:, :, part]), device.put(v[:, :, part]))

    append(slice(30))
    failed = append(slice(None))  # a step that failed is none
    with pytest.raises(attention.CacheFull):
        failed.result(WAIT_S)
    cache.fork(0, 1)
    for at in range(30, 40):
        one = slice(at, at + 1)
        append(one)
        if at == 32 and kept:
            cache.checkpoint().result(WAIT_S)
        if at in (33, 36):
            killed(lab, device)
        got = value(device, cache.attend(device.put(q[:, :, one])).y)
        np.testing.assert_allclose(got, exact[:, :, one], rtol=1e-11, atol=1e-13)
    assert cache.statistics() == (11, 0, 7, 2, 70)
