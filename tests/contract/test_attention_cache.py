"""The contract of caches of keys and values: attention of the whole, a model of pages, refusals."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import array, attention
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument, UnsupportedDtype
from tests.contract import attentions
from tests.contract.samples import reals, refused, seeds, value
from tests.contract.tolerances import EPS

WAIT_S = 30.0


def drawn(seed: int, tokens: int, dtype: str = "float64", heads: int = 2, width: int = 8) -> Any:
    """Return keys and values of a sequence."""
    return [reals(seed + at, (1, heads, tokens, width), dtype) for at in range(2)]


def put(device: Device, pair: Any, part: slice = slice(None)) -> tuple[AccelRef, AccelRef]:
    """Put some tokens of keys and values."""
    k, v = (device.put(one[:, :, part]) for one in pair)
    return k, v


def ended(found: Any, error: type[Exception], *words: str) -> Any:
    """Return the error that a message on the device ends with."""
    with pytest.raises(error) as caught:
        found.result(WAIT_S)
    for word in words:
        assert word in str(caught.value)
    return caught.value


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("page_size", [1, 16, 64])
def test_a_prompt_in_parts_and_single_tokens_is_attention_to_all(
    device: Device, page_size: int, dtype: str
) -> None:
    k, v = drawn(1, 41, dtype)
    q = reals(3, (1, 6, 41, 8), dtype)
    exact, logarithm = attentions.attention(q, k, v, causal="top_left")
    cache = attention.KVCache(device, heads=2, width=8, pages=50, page_size=page_size, dtype=dtype)
    ends = [0, 20, 37, 38, 39, 40, 41]
    for first, last in pairwise(ends):
        part = slice(first, last)
        cache.append(*put(device, (k, v), part))
        y, lse = cache.attend(device.put(q[:, :, part]), lse=True)
        assert lse is not None
        got, wide = value(device, y), "float64" if dtype == "float64" else "float32"
        off = 100 * EPS[wide]
        if dtype in ("float16", "bfloat16") and device.name.startswith("gpu"):
            off = 4 * EPS[dtype]  # weights are rounded to these, too
        np.testing.assert_allclose(
            got.astype("float64"), exact[:, :, part], rtol=EPS[dtype], atol=off
        )
        np.testing.assert_allclose(value(device, lse), logarithm[:, :, part], rtol=off, atol=off)
    pages = -(-41 // page_size)
    assert cache.statistics() == (50, 50 - pages, 0, 1, 41)


@pytest.mark.parametrize("options", [{}, {"window": 3}, {"alibi": True, "scale": 0.4}], ids=str)
@pytest.mark.parametrize("with_sink", [True, False])
def test_sequences_of_different_lengths_are_attended_together(
    device: Device, options: dict[str, Any], *, with_sink: bool
) -> None:
    cache = attention.KVCache(device, heads=2, width=8, pages=9, page_size=4, dtype="float64")
    lengths = {5: 9, 0: 2, 7: 4}
    stored = {number: drawn(number, length) for number, length in lengths.items()}
    for number, (k, v) in stored.items():
        cache.append(device.put(k), device.put(v), number)
    numbers = (7, 5, 0)
    q = reals(3, (3, 4, 2, 8), "float64")
    sink = reals(4, (4,), "float64") if with_sink else None
    put = None if sink is None else device.put(sink)
    got = value(device, cache.attend(device.put(q), numbers, sink=put, **options).y)
    for at, number in enumerate(numbers):
        exact, _ = attentions.attention(
            q[at : at + 1], *stored[number], sink=sink, causal="bottom_right", **options
        )
        np.testing.assert_allclose(got[at : at + 1], exact, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("tokens", [1, 8, 9])
@pytest.mark.parametrize(("heads", "width", "page_size"), [(9, 64, 16), (3, 5, 3)])
def test_few_and_many_queries_of_short_and_long_sequences(
    device: Device, heads: int, width: int, page_size: int, tokens: int
) -> None:
    """Also as views with gaps, and with the same bits each time."""
    lengths = {4: 1, 0: page_size, 7: page_size + 1, 2: 1100}
    cache = attention.KVCache(device, heads=3, width=width, pages=450, page_size=page_size)
    stored = {}
    for number, length in lengths.items():
        both = reals(number, (1, length, 6, width), "float32").transpose(0, 2, 1, 3)
        stored[number] = both[:, :3], both[:, 3:]
        put = array.transpose(device.put(both.transpose(0, 2, 1, 3).copy()), (0, 2, 1, 3))
        cache.append(put[:, :3], put[:, 3:], number)
    q = reals(3, (4, tokens, heads, width), "float32")
    put_q = array.transpose(device.put(q), (0, 2, 1, 3))
    y, lse = cache.attend(put_q, (*lengths,), lse=True)
    assert lse is not None
    got, logarithms = value(device, y), value(device, lse)
    for at, number in enumerate(lengths):
        turned = q[at : at + 1].transpose(0, 2, 1, 3)
        exact, logarithm = attentions.attention(turned, *stored[number], causal="bottom_right")
        off = 100 * EPS["float32"]
        np.testing.assert_allclose(got[at : at + 1], exact, rtol=off, atol=off)
        np.testing.assert_allclose(logarithms[at : at + 1], logarithm, rtol=off, atol=off)
    again = value(device, cache.attend(put_q, (*lengths,)).y)
    assert got.tobytes() == again.tobytes()


def test_forks_share_pages_until_one_goes_its_own_way(device: Device) -> None:
    cache = attention.KVCache(device, heads=2, width=8, pages=8, page_size=4, dtype="float64")
    whole = {0: drawn(1, 6)}
    cache.append(*put(device, whole[0]))
    cache.fork(0, (1, 2))
    assert cache.statistics() == (8, 6, 2, 3, 18)
    more = [np.concatenate(one) for one in zip(drawn(5, 1), drawn(7, 1), strict=True)]
    cache.append(*put(device, more), (1, 2))  # each in a page of its own
    assert cache.statistics() == (8, 4, 1, 3, 20)
    for at, number in enumerate((1, 2)):
        parts = zip(whole[0], more, strict=True)
        whole[number] = [np.concatenate((a, b[at : at + 1]), axis=2) for a, b in parts]
    q = reals(3, (1, 2, 1, 8), "float64")
    for number, (k, v) in whole.items():
        got = value(device, cache.attend(device.put(q), number).y)
        np.testing.assert_allclose(got, attentions.attention(q, k, v)[0], rtol=1e-11)
    cache.evict((0, 1))
    assert cache.statistics() == (8, 6, 0, 1, 7)
    got = value(device, cache.attend(device.put(q), 2).y)
    np.testing.assert_allclose(got, attentions.attention(q, *whole[2])[0], rtol=1e-11)


def test_what_a_window_does_not_see_need_not_be_kept(device: Device) -> None:
    cache = attention.KVCache(device, heads=2, width=8, pages=4, page_size=4, dtype="float64")
    k, v = drawn(1, 40)
    q = reals(3, (1, 2, 40, 8), "float64")
    exact, _ = attentions.attention(q, k, v, causal="top_left", window=7)
    for at in range(40):
        one = slice(at, at + 1)
        cache.append(device.put(k[:, :, one]), device.put(v[:, :, one]))
        got = value(device, cache.attend(device.put(q[:, :, one]), window=7).y)
        np.testing.assert_allclose(got, exact[:, :, one], rtol=1e-11, atol=1e-13)
        cache.evict(0, keep=7)
    assert cache.statistics() == (4, 2, 0, 1, 8)


@settings(max_examples=25)
@given(seed=seeds, data=st.data(), page_size=st.integers(1, 5))
def test_any_order_of_messages_is_what_a_list_of_tokens_is(
    device: Device, seed: int, data: st.DataObject, page_size: int
) -> None:
    pages = 8
    cache = attention.KVCache(
        device, heads=1, width=2, pages=pages, page_size=page_size, dtype="float64"
    )
    model: dict[int, Any] = {}
    numbers = st.integers(0, 3)
    q = reals(seed, (1, 1, 1, 2), "float64")
    for step in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(["append", "fork", "evict", "attend"]))
        number = data.draw(numbers)
        if kind == "append":
            new = drawn(seed + step, data.draw(st.integers(0, 7)), heads=1, width=2)
            before = cache.statistics()
            old = model.get(number, drawn(0, 0, heads=1, width=2))
            whole = [np.concatenate(pair, axis=2) for pair in zip(old, new, strict=True)]
            appended = cache.append(*put(device, new), number)
            full: attention.CacheFull | None = None
            try:
                appended.result(WAIT_S)
                model[number] = whole
            except attention.CacheFull as error:
                full = error
            if full is not None:
                assert full.needed > full.free == before.free
                assert cache.statistics() == before
        elif number not in model:
            ended(cache.evict(number), InvalidArgument, f"no sequence {number}")
        elif kind == "fork" and (to := data.draw(numbers)) not in model:
            cache.fork(number, to)
            model[to] = model[number]
        elif kind == "evict":
            cache.evict(number)
            del model[number]
        counts = cache.statistics()
        assert (counts.sequences, counts.tokens) == (
            len(model),
            sum(k.shape[2] for k, _ in model.values()),
        )
        assert pages - counts.free <= sum(-(-k.shape[2] // page_size) for k, _ in model.values())
        for one, (k, v) in model.items():
            got = value(device, cache.attend(device.put(q), one).y)
            np.testing.assert_allclose(got, attentions.attention(q, k, v)[0], rtol=1e-10)
    cache.evict(tuple(model))
    assert cache.statistics() == (pages, pages, 0, 0, 0)


def test_a_full_cache_is_as_it_was(device: Device) -> None:
    cache = attention.KVCache(device, heads=2, width=8, pages=3, page_size=4, dtype="float64")
    k, v = drawn(1, 9)
    cache.append(device.put(k), device.put(v))
    error = ended(
        cache.append(device.put(k), device.put(v)), attention.CacheFull, "2 pages are needed"
    )
    assert (error.needed, error.free) == (2, 0)
    cache.append(*put(device, (k, v), slice(3)))
    whole = [np.concatenate((one, one[:, :, :3]), axis=2) for one in (k, v)]
    q = reals(3, (1, 2, 1, 8), "float64")
    got = value(device, cache.attend(device.put(q)).y)
    np.testing.assert_allclose(got, attentions.attention(q, *whole)[0], rtol=1e-11)


def test_a_copy_of_a_shared_page_needs_room_and_no_more_than_that(device: Device) -> None:
    cache = attention.KVCache(device, heads=2, width=8, pages=3, page_size=4, dtype="float64")
    begun, token = drawn(1, 6), drawn(5, 1)
    both = [np.concatenate((one, 2 * one)) for one in token]
    cache.append(*put(device, begun))
    cache.fork(0, 1)
    cache.append(*put(device, both), (0, 1))  # the one that is copied first leaves it to the other
    assert cache.statistics() == (3, 0, 1, 2, 14)
    q = reals(3, (1, 2, 1, 8), "float64")
    for at, number in enumerate((0, 1)):
        pairs = zip(begun, both, strict=True)
        whole = [np.concatenate((old, new[at : at + 1]), axis=2) for old, new in pairs]
        got = value(device, cache.attend(device.put(q), number).y)
        np.testing.assert_allclose(got, attentions.attention(q, *whole)[0], rtol=1e-11)
    cache.evict(1)
    cache.fork(0, 2)
    cache.append(*put(device, token), 2)
    cache.fork(0, 3)
    error = ended(cache.append(*put(device, token), 3), attention.CacheFull)
    assert (error.needed, error.free) == (1, 0)


def test_what_a_cache_takes_is_told_and_given_back(device: Device) -> None:
    cache = attention.KVCache(device, heads=2, width=8, pages=64, page_size=16, dtype="float16")
    cache.handle.result(WAIT_S)
    assert cache.handle.nbytes_made == 2 * 64 * 16 * 2 * 8 * 2
    assert "KVPages" in repr(cache)
    assert "KVPages" in str(device.resident)
    cache.free()


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    cache = attention.KVCache(device, heads=2, width=8, pages=3)
    two, q = array.zeros(device, (2, 2, 1, 8)), array.zeros(device, (1, 4, 1, 8))
    k, short = array.zeros(device, (1, 2, 3, 8)), array.zeros(device, (1, 2, 2, 8))
    flat, double = array.zeros(device, (2, 8)), array.zeros(device, (1, 2, 3, 8), "float64")
    with refused(device, "pages is 0", "from 1"):
        attention.KVCache(device, heads=2, width=8, pages=0)
    with refused(device, "width is 257", "256"):
        attention.KVCache(device, heads=2, width=257, pages=1)
    with refused(device, "k is float32[2, 8]", "(batch, heads, tokens, features)"):
        cache.append(flat, flat)
    with refused(device, "v is float32[1, 2, 2, 8]", "[1, 2, 3, 8]"):
        cache.append(k, short)
    with refused(device, "one dtype"):
        cache.append(k, double)
    with refused(device, "k is float32[2, 2, 1, 8]", "sequences are [0]"):
        cache.append(two, two)
    with refused(device, "sequences are [1, 1]", "different"):
        cache.append(two, two, (1, 1))
    with refused(device, "sequences are [-1]"):
        cache.attend(q, -1)
    with refused(device, "window is -1"):
        cache.attend(q, window=-1)
    with refused(device, "keep is -1"):
        cache.evict(0, keep=-1)
    with refused(device, "of is -1"):
        cache.fork(-1, 0)
    with pytest.raises(UnsupportedDtype, match="int32"):
        attention.KVCache(device, heads=2, width=8, pages=3, dtype="int32")


def test_what_only_the_device_knows_is_refused_by_it(device: Device) -> None:
    cache = attention.KVCache(device, heads=2, width=8, pages=3)
    k, q = array.zeros(device, (1, 2, 3, 8)), array.zeros(device, (1, 4, 1, 8))
    cache.append(k, k)
    three = array.zeros(device, (1, 3, 1, 8))
    wide, double = array.zeros(device, (1, 2, 1, 9)), array.zeros(device, (1, 2, 1, 8), "float64")
    stored = "the cache stores float32 of 2 heads of 8 features"
    ended(cache.append(three, three), InvalidArgument, "k is float32[1, 3, 1, 8]", stored)
    ended(cache.append(wide, wide), InvalidArgument, "k is float32[1, 2, 1, 9]", stored)
    ended(cache.append(double, double), InvalidArgument, "k is float64[1, 2, 1, 8]", stored)
    ended(cache.attend(three).y, InvalidArgument, "q is float32[1, 3, 1, 8]", stored)
    ended(cache.attend(q, 4).y, InvalidArgument, "no sequence 4, but [0]")
    ended(cache.fork(3, 4), InvalidArgument, "no sequence 3")
    ended(cache.fork(0, (1, 0)), InvalidArgument, "has sequences [0] already")
    ended(cache.evict((0, 1)), InvalidArgument, "no sequence 1")
    assert cache.statistics() == (3, 2, 0, 1, 3)
