"""Messages that a context decodes: whether they came before makes no difference but in time."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import System
from accel_lab.backends.host import SUPPORT
from accel_lab.backends.host.device import HostBackend
from accel_lab.compute.dispatcher import decoding as entries
from accel_lab.compute.dispatcher.decoding import Entries
from accel_lab.compute.execution.context import Context
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.builtin import Free, Put
from accel_lab.compute.message.bytes_cache import LONGEST, MOST
from accel_lab.compute.message.operation import NO_RESULT, operands_of, travelling
from accel_lab.compute.wire.codec import batch, encode_entry
from accel_lab.libraries import ACTORS
from accel_lab.libraries.blas.library import Axpy
from accel_lab.libraries.jit.messages import LaunchKernel


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    arena: Any = None
    # Other tests have messages that do not go together.
    kinds = [kind for kind in travelling() if kind.__module__.startswith("accel_lab.")]
    # One that runs the user's code would change this process's environment.
    actors = [kind for kind in ACTORS if kind.library in ("upload", "blas", "jit")]
    context = Context(HostBackend(0), actors, arena, 1, SUPPORT, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "travelling", lambda: kinds)
        yield context
    context.close()


def named(id_: int) -> AccelRef:
    """Return a handle as it travels: by its number."""
    ref = AccelRef.__new__(AccelRef)
    ref.id = id_
    return ref


def launch(factor: float, *ids: int) -> Any:
    refs = tuple(map(named, ids))
    values = (factor, *(None for _ in refs))
    kernel: Any = named(1)
    return LaunchKernel(kernel, (1, 1, 1), (32, 1, 1), refs, values, 0)


def frame(messages: list[Any], first: int = 1) -> memoryview:
    encoded = [
        encode_entry(first + i, 0, 600.0, message, NO_RESULT) for i, message in enumerate(messages)
    ]
    return memoryview(batch(encoded))


def plain(found: list[Any]) -> list[tuple[Any, ...]]:
    """Return what entries say, buffers by their numbers."""
    return [
        (
            entry.seq,
            entry.result,
            entry.timeout_s,
            entry.spec,
            type(entry.message),
            str(msgspec.to_builtins(entry.message, enc_hook=lambda ref: ref.id)),
        )
        for entry in found
    ]


MAKE: dict[str, Callable[[int, int], Any]] = {
    "launch": lambda x, y: launch(1.0, x, y),
    "axpy": lambda x, y: Axpy(named(x), named(y)),
    "put": lambda x, y: Put((x * y * 50,), "uint8", bytes(x * y * 50)),
    "free": lambda x, y: Free([100 * x + y]),
}
ASKED = st.tuples(st.sampled_from(list(MAKE)), st.integers(2, 4), st.integers(2, 4))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(ASKED, min_size=1, max_size=12), min_size=1, max_size=12))
def test_what_came_before_is_as_what_came_first(
    context: Context, frames: list[list[tuple[str, int, int]]]
) -> None:
    remembering = Entries(context)
    for asked in frames:
        data = frame([MAKE[kind](x, y) for kind, x, y in asked])
        found = remembering.decode(data)
        assert plain(found) == plain(Entries(context).decode(data))
        for entry in found:
            if type(entry.message) is Free:
                continue
            operands = operands_of(type(entry.message))(entry.message)
            assert all(ref is context.table.known(ref.id) for ref in operands)
            assert entry.seen is None or entry.seen.operands == operands


def test_a_message_that_comes_again_is_the_same_one(context: Context) -> None:
    found = Entries(context).decode(frame([launch(1.0, 2), launch(2.0, 2), launch(1.0, 2)]))
    assert [entry.seen is None for entry in found] == [True, True, False]
    assert found[0].message is found[2].message
    assert [entry.seq for entry in found] == [1, 2, 3]


def test_only_short_messages_to_a_library_are_remembered(context: Context) -> None:
    long = Put((LONGEST,), "uint8", bytes(LONGEST))
    decoding = Entries(context)
    for messages in ([long, long], [Free([999]), Free([999])]):
        decoding.decode(frame([launch(1.0, 2)] * 8))
        decoding.decode(frame([launch(1.0, 2)] * 8))  # however the frame before was
        assert [entry.seen for entry in decoding.decode(frame(messages))] == [None, None]


def test_frames_of_which_nothing_comes_again_are_decoded_at_once(context: Context) -> None:
    decoding = Entries(context)
    looked = 0
    for turn in range(400):
        messages = [launch(64.0 * turn + i, 2) for i in range(64)]
        decoding.decode(frame(messages))
        again = decoding.decode(frame(messages[-1:] * 2))
        looked += any(entry.seen is not None for entry in again)
    assert looked < 400 / 8
    loop = frame([launch(0.5, 2)] * 64)
    found = [decoding.decode(loop) for _ in range(entries.SKIP_LIMIT + 2)]
    assert all(entry.seen is not None for entry in found[-1])


def test_no_more_than_so_many_are_remembered(context: Context) -> None:
    decoding = Entries(context)
    for turn in range(8):
        messages = [launch(float(i), 3) for i in range(turn * 64, turn * 64 + 64)]
        decoding.decode(frame([one for one in messages for _ in range(2)]))
        assert len(decoding._known) <= MOST


@pytest.mark.parametrize("skip", [0, 5])
def test_a_message_of_wrong_types_is_refused_and_those_beside_it_are_not(
    context: Context, skip: int
) -> None:
    """Whatever the notebook has let pass: a wire is corrupt where its frames are."""
    decoding = Entries(context)
    decoding._skip = skip
    odd: Any = Put((1.5,), "uint8", b"x")  # type: ignore[arg-type]
    found = decoding.decode(frame([launch(1.0, 2), odd, Put((1,), "uint8", b"x")], first=7))
    assert [entry.seq for entry in found] == [7, 8, 9]
    refused = found[1].message
    assert isinstance(refused, entries.Unreadable)
    assert "Expected `int`, got `float`" in refused.why
    assert isinstance(found[2].message, Put)
    late = encode_entry(4, 0, "soon", Free([1]), NO_RESULT)  # type: ignore[arg-type]
    (entry,) = decoding.decode(memoryview(batch([late])))
    assert (entry.seq, type(entry.message)) == (4, entries.Unreadable)
    with pytest.raises(msgspec.DecodeError):
        decoding.decode(memoryview(batch([late]))[:-3])
    with pytest.raises(msgspec.DecodeError):
        decoding.decode(memoryview(batch([msgspec.msgpack.encode([1, 2])])))
    for message in ([12345, 1], [], ["Free", 1]):
        unknown = msgspec.msgpack.encode([4, 0, None, message, None])
        with pytest.raises(msgspec.DecodeError):
            decoding.decode(memoryview(batch([unknown])))


def test_a_context_finds_out_nothing_about_types_that_its_zygote_knows() -> None:
    with System("host") as lab:
        hits, misses, *_ = lab.devices[0].run(lambda: tuple(entries._types.cache_info())).result(30)
    assert (misses, hits) == (1, 1)
