"""Every item comes out once, in order, and no stage holds more than it may."""

import asyncio
import contextlib
import gc
import signal
import threading
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.actor.supervision import AllForOne, Backoff, OneForOne, RestForOne, Strategy
from accel_lab.errors import ContextLost, InvalidArgument, StageFailed, StaleRef
from accel_lab.pipeline import Pipeline, Source
from accel_lab.pipeline.pipeline import TURNS
from tests.faults.conftest import settle

AT_ONCE = Backoff(base_s=0.0)
STRATEGIES = [
    kind(max_restarts=10_000, backoff=AT_ONCE) for kind in (OneForOne, RestForOne, AllForOne)
]


class Counted:
    """A stage's function that counts how many calls run at a time, and fails now and then."""

    def __init__(self, add: int, faults: set[int]) -> None:
        self.add = add
        self.faults = faults
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def __call__(self, item: int) -> int:
        self.begin()
        try:
            return self.compute(item)
        finally:
            self.end()

    def begin(self) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)

    def compute(self, item: int) -> int:
        if item in self.faults:  # its context is lost, or what it works with
            self.faults.discard(item)
            raise (ContextLost if item % 2 else StaleRef)("as if it were lost")
        return item + self.add

    def end(self) -> None:
        with self._lock:
            self._now -= 1


async def awaited(function: Counted, item: int) -> int:
    """Do the same as a coroutine, while others are at it, too."""
    function.begin()
    try:
        await asyncio.sleep(0)
        return function.compute(item)
    finally:
        function.end()


class Fed:
    """A source that counts what is on its way: read, and not come out."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.most = self.out = 0
        self.closed = False

    def __iter__(self) -> Iterator[int]:
        try:
            for item in range(self.count):
                self.most = max(self.most, item + 1 - self.out)
                yield item
        finally:
            self.closed = True


ITEMS = 12
stage = st.tuples(
    st.integers(1, 3), st.integers(0, 2), st.booleans(), st.sets(st.integers(0, ITEMS - 1))
)


@given(
    stages=st.lists(stage, max_size=3),
    ahead=st.integers(1, 3),
    strategy=st.sampled_from(STRATEGIES),
    ends=st.sampled_from(["sink", "loop"]),
    kind=st.sampled_from(["plain", "async"]),
)
@settings(max_examples=60)
def test_every_item_comes_out_once_whatever_the_stages(
    stages: list[tuple[int, int, bool, set[int]]], ahead: int, strategy: Any, ends: str, kind: str
) -> None:
    fed = Fed(ITEMS)
    found: list[int] = []
    pipeline: Pipeline = Source(fed, ahead=ahead, strategy=strategy)
    counted = []
    for at, (parallelism, more, ordered, faults) in enumerate(stages):
        lost = {item + 100 * at for item in faults}
        counted.append(Counted(100, lost))
        pipeline = pipeline.stage(
            counted[-1] if kind == "plain" else partial(awaited, counted[-1]),
            parallelism=parallelism,
            capacity=parallelism + more,
            ordered=ordered,
            name=f"stage {at}",
        )

    def take(item: int) -> None:
        found.append(item)
        fed.out += 1

    async def loop() -> None:
        async for item in pipeline:
            take(item)

    if ends == "sink":
        progress = pipeline.sink(take).result()
        assert progress.stages[-1].passed == ITEMS
    else:
        asyncio.run(loop())
    assert Counter(found) == Counter(item + 100 * len(stages) for item in range(ITEMS))
    if all(ordered for _, _, ordered, _ in stages):
        assert found == sorted(found)
    for one, (parallelism, _, _, _) in zip(counted, stages, strict=True):
        assert one.most <= parallelism
        assert not one.faults
    room = ahead + sum(parallelism + more for parallelism, more, _, _ in stages) + (ends == "sink")
    assert fed.most <= room + 1  # the one that is being taken
    assert fed.closed


async def test_a_stage_that_is_held_up_holds_up_the_source() -> None:
    """It shows in the table, and ends when there is room again."""
    gate, full, found = asyncio.Event(), asyncio.Event(), []
    read = 0

    async def feed() -> AsyncIterator[int]:
        nonlocal read
        for item in range(40):
            read += 1
            if read == 2 + 4 + 3 + 1:
                full.set()
            yield item

    async def hold(item: int) -> None:
        await gate.wait()
        found.append(item)

    pipeline = (
        Source(feed(), ahead=2)
        .stage(lambda item: item, parallelism=2, capacity=4, name="before")
        .stage(lambda item: item, capacity=3, name="behind")
        .sink(hold)
    )
    running = asyncio.create_task(pipeline.run())
    await asyncio.wait_for(full.wait(), 10)

    def held() -> tuple[int, ...]:
        return tuple(one.done + one.running for one in pipeline.progress.stages)

    assert await asyncio.to_thread(settle, lambda: held() == (2, 4, 3, 1))
    assert read == 10
    table = repr(pipeline.progress)
    assert "before" in table
    assert "running" in table
    gate.set()
    progress = await running
    assert found == list(range(40))
    assert progress.state == "done"
    assert progress.stages[1].output_s > 0
    assert pipeline._repr_html_().count("<tr>") == 5


async def test_a_function_that_fails_names_its_stage_and_item() -> None:
    def reject(item: int) -> int:
        if item == 5:
            raise ValueError("five")
        return item

    pipeline = Source(range(9)).stage(reject, parallelism=2)
    with pytest.raises(StageFailed, match="stage reject of pipeline failed on item 5") as caught:
        await pipeline.run()
    assert isinstance(caught.value.__cause__, ValueError)
    assert (caught.value.stage, caught.value.item, caught.value.runs) == ("reject", 5, 1)
    assert pipeline.progress.state == "failed"

    lenient = Source(range(9)).stage(reject, parallelism=2, on_error="skip")
    assert lenient.result() == [0, 1, 2, 3, 4, 6, 7, 8]
    assert [one.item for one in lenient.skipped] == [5]
    assert lenient.progress.stages[1].skipped == 1


async def test_a_fault_that_stays_fails_after_the_last_retry() -> None:
    runs = []

    def lose(item: int) -> None:
        runs.append(item)
        raise ContextLost("again")

    with pytest.raises(StageFailed, match="failed 3 times on item 0") as caught:
        await Source([7]).stage(lose, retries=2).run()
    assert isinstance(caught.value.__cause__, ContextLost)
    assert runs == [7, 7, 7]


@pytest.mark.parametrize(("strategy", "runs"), [(RestForOne(), 2), (OneForOne(), 1)])
async def test_a_fault_has_the_stages_after_it_run_again_what_they_are_at(
    strategy: Strategy, runs: int
) -> None:
    begun, gate, calls = asyncio.Event(), asyncio.Event(), []

    async def lose(item: int) -> int:
        if item == 1 and not gate.is_set():
            await begun.wait()
            gate.set()
            raise ContextLost("once")
        return item

    async def work(item: int) -> int:
        calls.append(item)
        begun.set()
        await (gate.wait() if calls == [0] and runs == 1 else asyncio.sleep(0))
        if calls == [0] and runs == 2:
            await asyncio.sleep(600)  # until it is stopped
        return item

    pipeline = Source(range(3), strategy=strategy).stage(lose).stage(work)
    assert await asyncio.wait_for(pipeline.run(), 10) == [0, 1, 2]
    assert calls.count(0) == runs


async def test_a_source_that_fails_is_told_as_the_stage_source() -> None:
    def feed() -> Iterator[int]:
        yield 1
        raise OSError("no more disk")

    with pytest.raises(StageFailed, match="no more disk") as caught:
        await Source(feed()).stage(lambda item: item).run()
    assert (caught.value.stage, caught.value.item) == ("source", 1)


async def take_one(pipeline: Pipeline, works: asyncio.Event) -> None:
    async for _ in pipeline:
        await works.wait()
        break


async def take_one_and_close(pipeline: Pipeline, works: asyncio.Event) -> None:
    async with contextlib.aclosing(aiter(pipeline)) as items:
        async for _ in items:
            await works.wait()
            break


async def take_all(pipeline: Pipeline, _: asyncio.Event) -> None:
    await pipeline.run()


LEAVE = {"break": take_one, "aclosing": take_one_and_close, "cancel": take_all}


@pytest.mark.parametrize("end", LEAVE)
async def test_leaving_closes_the_source_and_takes_back_what_runs(end: str) -> None:
    closed, works, cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def feed() -> AsyncIterator[int]:
        try:
            for item in range(1000):
                yield item
        finally:
            closed.set()

    async def work(item: int) -> int:
        if item == 0:
            return item
        works.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return item

    pipeline = Source(feed()).stage(work, parallelism=2)

    taking = asyncio.create_task(LEAVE[end](pipeline, works))
    if end == "cancel":
        await asyncio.wait_for(works.wait(), 10)
        taking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await taking
    assert closed.is_set() or end == "break"  # which has it closed in the loop's next turn
    await asyncio.wait_for(closed.wait(), 10)
    assert cancelled.is_set()
    assert pipeline.progress.state == "closed"


def test_a_result_that_is_late_ends_what_runs() -> None:
    ended = threading.Event()

    async def work(item: int) -> int:
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()
        return item

    with pytest.raises(TimeoutError, match="not done within"):
        Source([1]).stage(work).result(timeout_s=0.2)
    assert ended.is_set()


def test_an_interrupt_ends_what_runs() -> None:
    ended = threading.Event()

    async def work(item: int) -> int:
        signal.raise_signal(signal.SIGINT)  # the main thread, which waits, gets it
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()
        return item

    pipeline = Source([1]).stage(work)
    with pytest.raises(KeyboardInterrupt):
        pipeline.result()
    assert ended.is_set()
    assert pipeline.progress.state == "closed"


def test_an_interrupt_that_comes_while_the_thread_starts_ends_it_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[threading.Thread] = []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        if threading.current_thread() is threading.main_thread():  # its loop starts threads, too
            begun.append(thread)
            raise KeyboardInterrupt

    async def work(item: int) -> int:
        await asyncio.sleep(600)
        return item

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Source([1]).stage(work).result()
    assert not begun[0].is_alive()


async def test_a_run_that_is_still_being_closed_does_not_stop_a_blocking_one() -> None:
    """A notebook's next cell blocks the loop that closes what the one before it has left."""
    begun, gate = threading.Event(), threading.Event()

    def work(item: int) -> int:
        if item and not begun.is_set():
            begun.set()
            gate.wait(60)  # what runs in a thread is waited for
        return item

    pipeline = Source(range(3)).stage(work)
    try:
        async for _ in pipeline:
            assert await asyncio.to_thread(begun.wait, 60)
            break
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert pipeline.result(60) == [0, 1, 2]
        assert not gate.is_set()
    finally:
        gate.set()
    assert await pipeline.run() == [0, 1, 2]


async def test_a_class_is_built_again_when_its_stage_restarts() -> None:
    built = []

    class Model:
        def __init__(self) -> None:
            built.append(self)
            self.is_first = len(built) == 1

        def __call__(self, item: int) -> int:
            if self.is_first and item == 3:
                raise ContextLost("with the model")
            return item

    assert await Source(range(6)).stage(Model).run() == list(range(6))
    assert len(built) == 2


async def test_files_are_loaded_ahead(tmp_path: Any) -> None:
    for number in range(6):
        (tmp_path / f"{number}.txt").write_text(str(number))
    paths = sorted(tmp_path.iterdir())
    pipeline = Source.files(paths, load=lambda path: path.read_text(), ahead=3)
    assert await pipeline.run() == ["0", "1", "2", "3", "4", "5"]
    assert pipeline.progress.stages[1].capacity == 3


def test_what_does_not_fit_is_refused_at_the_call() -> None:
    source = Source([1])
    with pytest.raises(InvalidArgument, match="takes an iterable"):
        Source(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="one of the two"):
        source.stage()
    with pytest.raises(InvalidArgument, match="capacity is a whole number of at least 4"):
        source.stage(str, parallelism=4, capacity=3)
    with pytest.raises(InvalidArgument, match="takes a device, a list"):
        source.stage(str, devices=["cpu0"])


class Big:
    """An item whose memory matters."""

    def __init__(self, number: int) -> None:
        self.number = number


@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_a_pipeline_that_is_over_holds_no_item(on_error: Any) -> None:
    """Though it keeps what it failed with, or what it has left out."""
    known: list[weakref.ref[Big]] = []

    def feed() -> Iterator[Big]:
        for number in range(5):
            item = Big(number)
            known.append(weakref.ref(item))
            yield item

    def work(item: Big) -> Big:
        if item.number == 2:
            raise ValueError("of item 2")
        return item

    pipeline = Source(feed()).stage(work, on_error=on_error)
    with contextlib.suppress(StageFailed):
        await pipeline.run()
    gc.collect()
    assert len(known) >= 3
    assert [ref() for ref in known if ref() is not None] == []
    assert pipeline.progress.state in ("done", "failed")


async def test_a_pipeline_runs_once_at_a_time() -> None:
    pipeline = Source([1, 2]).stage(lambda item: item)
    async for _ in pipeline:
        with pytest.raises(InvalidArgument, match="is running"):
            await pipeline.run()
    async for _ in pipeline:
        break
    assert await pipeline.run() == [1, 2]  # waits for the end of what was left
    assert await Source([1, 2]).run() == [1, 2]  # without a stage
