"""Which messages of a frame a context computes together, and what becomes of them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from accel_lab.backends.host.device import HostBackend
from accel_lab.backends.host.support import SUPPORT
from accel_lab.compute.dispatcher.decoding import Entries
from accel_lab.compute.execution.context import Context
from accel_lab.compute.execution.stream import Storage
from accel_lab.compute.fusion.program import STEP, Enqueue, Program, Step
from accel_lab.compute.message.builtin import Free
from accel_lab.compute.message.operation import NO_RESULT, Operation, Spec, travelling
from accel_lab.compute.message.unwritten import Refusal
from accel_lab.compute.wire.codec import Done, Failure, batch, encode_entry
from accel_lab.libraries import ACTORS
from accel_lab.libraries.array.library import Binary, Copy, Unary, Where
from tests.compute.wires import Wire, service_of

SHAPE = (2, 3)
X = np.arange(6, dtype="f4").reshape(SHAPE)


class Bench:
    """A context without a process, which executes frames; buffers 1 and 2 are there."""

    def __init__(self) -> None:
        actors = [kind for kind in ACTORS if kind.library in ("upload", "array")]
        arena: Any = None
        self.context = Context(HostBackend(0), actors, arena, 1, SUPPORT, None)
        self.wire = Wire([])
        self.dispatcher = service_of(self.wire, self.context)
        library = self.context.actors["array"].lib
        self.compute, library.fused = library.fused, self
        self.least = 2
        self.fails = False
        self.programs: list[Program] = []
        self.results = 0
        self._entries = Entries(self.context)
        stream = self.context.actors["array"].stream
        for id_ in (1, 2):
            self.context.table.fill(
                id_, X * id_, SHAPE, "float32", Storage(stream, X.nbytes, "given")
            )

    def __call__(self, program: Program, shape: tuple[int, ...], arrays: Sequence[Any]) -> Enqueue:
        enqueue: Enqueue = self.compute(program, shape, arrays)

        def enqueued(numbers: Sequence[Any], outs: Sequence[Any]) -> None:
            if self.fails:
                raise RuntimeError("the driver says no")
            enqueue(numbers, outs)

        self.programs.append(program)
        return enqueued

    def run(
        self,
        *messages: Operation[Any],
        first: int = 10,
        freed: Sequence[int] = (),
        shape: tuple[int, ...] = SHAPE,
        timeout_s: float = 600.0,
    ) -> None:
        """Execute a frame of messages whose results have the ids from `first` on."""
        parts = [
            encode_entry(id_, id_, timeout_s, message, Spec(shape, dtype_of(message)))
            for id_, message in enumerate(messages, first)
        ]
        if freed:
            parts.append(encode_entry(0, 0, None, Free(list(freed)), NO_RESULT))
        self.dispatcher._execute_all(self._entries.decode(memoryview(batch(parts))))
        self.dispatcher._completion.complete()

    def of(self, id_: int) -> Any:
        """Return the buffer of an id, as an operand."""
        return self.context.table.mention(id_)

    def value(self, id_: int) -> Any:
        return self.of(id_).array

    @property
    def answered(self) -> list[int]:
        return [seq for one in self.wire.sent if isinstance(one, Done) for seq in one.seqs]


def dtype_of(message: Any) -> str:
    return "bool" if getattr(message, "op", "") == "greater" else "float32"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # Other tests have messages that do not go together.
    kinds = [kind for kind in travelling() if kind.__module__.startswith("accel_lab.")]
    monkeypatch.setattr("accel_lab.compute.dispatcher.decoding.travelling", lambda: kinds)
    bench = Bench()
    yield bench
    bench.context.close()


def chain(bench: Bench) -> list[Operation[Any]]:
    """Return exp(-|x * 2 + y|), whose results are 10 to 14."""
    one, other = bench.of(1), bench.of(2)
    return [
        Binary("multiply", one, None, 2.0),
        Binary("add", bench.of(10), other),
        Unary("absolute", bench.of(11)),
        Unary("negative", bench.of(12)),
        Unary("exp", bench.of(13)),
    ]


def test_a_chain_is_one_piece_of_work_and_only_its_end_is_written(bench: Bench) -> None:
    bench.run(*chain(bench), freed=[10, 11, 12, 13])
    (program,) = bench.programs
    assert program.steps == (
        Step("multiply", (0, -1), "float32"),
        Step("add", (STEP, 1), "float32"),
        Step("absolute", (STEP + 1,), "float32"),
        Step("negative", (STEP + 2,), "float32"),
        Step("exp", (STEP + 3,), "float32"),
    )
    assert (program.arrays, program.numbers) == (("float32", "float32"), ("float",))
    assert program.kept == (4,)
    assert bench.answered == [10, 11, 12, 13, 14], "each message has its own answer"
    np.testing.assert_array_equal(bench.value(14), np.exp(-np.abs(X * 2 + X * 2)))
    assert sorted(b.id for b in bench.context.table.buffers()) == [1, 2, 14]
    assert bench.context.used_bytes == 3 * X.nbytes


def test_what_the_notebook_still_has_is_written_by_the_same_work(bench: Bench) -> None:
    bench.run(*chain(bench), freed=[10, 12, 13])
    (program,) = bench.programs
    assert program.kept == (1, 4)
    np.testing.assert_array_equal(bench.value(11), X * 2 + X * 2)


def test_what_a_later_message_of_the_frame_reads_is_written(bench: Bench) -> None:
    later = Copy(bench.of(11))
    bench.run(*chain(bench), later, freed=[10, 11, 12, 13])
    (program,) = bench.programs
    assert program.kept == (1, 4)
    np.testing.assert_array_equal(bench.value(15), X * 2 + X * 2)


def test_without_what_is_freed_all_of_it_is_written(bench: Bench) -> None:
    bench.run(*chain(bench))
    (program,) = bench.programs
    assert program.kept == (0, 1, 2, 3, 4)


def test_a_result_that_nothing_reads_is_written_though_it_is_freed(bench: Bench) -> None:
    one = bench.of(1)
    bench.run(Unary("negative", one), Binary("add", bench.of(10), one), freed=[10, 11])
    (program,) = bench.programs
    assert program.kept == (1,), "what was asked for is computed"


def test_what_has_nothing_to_do_with_each_other_goes_apart(bench: Bench) -> None:
    one = bench.of(1)
    bench.run(Unary("negative", one), Unary("exp", one), Unary("absolute", bench.of(11)))
    (program,) = bench.programs
    assert [step.op for step in program.steps] == ["exp", "absolute"]
    np.testing.assert_array_equal(bench.value(10), -X)


def test_another_message_between_two_parts_them(bench: Bench) -> None:
    one = bench.of(1)
    bench.run(Unary("negative", one), Copy(bench.of(10)), Unary("exp", bench.of(11)))
    assert not bench.programs
    np.testing.assert_array_equal(bench.value(12), np.exp(-X))


def test_what_is_written_in_place_goes_alone(bench: Bench) -> None:
    one = bench.of(1)
    parts = [
        encode_entry(10, 10, 600.0, Unary("negative", one), Spec(SHAPE, "float32")),
        encode_entry(11, 0, 600.0, Unary("exp", bench.of(10), out=bench.of(10)), NO_RESULT),
    ]
    bench.dispatcher._execute_all(bench._entries.decode(memoryview(batch(parts))))
    assert not bench.programs
    np.testing.assert_array_equal(bench.value(10), np.exp(-X))


def test_a_message_with_a_short_time_limit_goes_alone(bench: Bench) -> None:
    bench.run(*chain(bench), timeout_s=5.0)
    assert not bench.programs
    np.testing.assert_array_equal(bench.value(14), np.exp(-np.abs(X * 2 + X * 2)))


def test_where_the_driver_refuses_each_is_tried_alone(bench: Bench) -> None:
    bench.fails = True
    bench.run(*chain(bench), freed=[10, 11, 12, 13])
    assert len(bench.programs) == 1, "it is not tried again for what is left of it"
    assert bench.answered == [10, 11, 12, 13, 14]
    np.testing.assert_array_equal(bench.value(14), np.exp(-np.abs(X * 2 + X * 2)))


def test_an_operand_that_is_not_there_fails_its_message_and_what_depends_on_it(
    bench: Bench,
) -> None:
    one = bench.of(1)
    bench.run(
        Unary("negative", one),
        Binary("add", bench.of(10), bench.of(99)),
        Unary("exp", bench.of(11)),
    )
    failed = [one.seq for one in bench.wire.sent if isinstance(one, Failure)]
    assert failed == [11, 12]
    np.testing.assert_array_equal(bench.value(10), -X)


@pytest.mark.parametrize("unusual", ["cancelled", "withheld", "watched"])
def test_where_anything_is_unusual_each_goes_alone(bench: Bench, unusual: str) -> None:
    if unusual == "cancelled":
        bench.dispatcher.cancelled.add(12)
    elif unusual == "withheld":
        bench.context.table.withhold(bench.of(2), Refusal(2, 5, 5))
    else:
        bench.dispatcher.tracer.watch()
    bench.run(*chain(bench))
    assert not bench.programs
    done = {"cancelled": [10, 11], "withheld": [10], "watched": [10, 11, 12, 13, 14]}
    assert bench.answered == done[unusual]


def test_a_choice_reads_its_condition(bench: Bench) -> None:
    one, other = bench.of(1), bench.of(2)
    bench.run(Binary("greater", one, None, 2.5), Where(bench.of(10), one, other), freed=[10])
    (program,) = bench.programs
    assert program.kept == (1,)
    np.testing.assert_array_equal(bench.value(11), np.where(X > 2.5, X, 2 * X))
