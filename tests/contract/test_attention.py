"""The contract of attention: the definition, PyTorch, finite differences, views, refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import array, attention
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import DependencyFailed, InvalidArgument, OutOfBounds, UnsupportedDtype
from tests.contract import attentions
from tests.contract.samples import LAYOUTS, place, reals, refused, seeds, value
from tests.contract.tolerances import EPS

DTYPES = ("float16", "bfloat16", "float32", "float64")
SHAPES: tuple[tuple[Any, ...], ...] = (
    ((2, 4, 7, 8), (2, 4, 7, 8), 8),
    ((1, 6, 5, 16), (1, 2, 11, 16), 24),
    ((2, 4, 9, 5), (2, 1, 6, 5), 3),
    ((1, 2, 300, 32), (1, 2, 700, 32), 32),
    ((1, 1, 3, 256), (1, 1, 4, 256), 256),
)
MASKS: tuple[dict[str, Any], ...] = (
    {},
    {"causal": "top_left"},
    {"causal": "bottom_right"},
    {"causal": "top_left", "window": 3},
    {"causal": "bottom_right", "window": 200, "scale": 0.3},
    {"alibi": True, "causal": "bottom_right"},
    {"alibi": True},
)
of_each_shape = pytest.mark.parametrize(("of_q", "of_k", "value_width"), SHAPES)
of_each_mask = pytest.mark.parametrize("options", MASKS, ids=str)


def drawn(of_q: Any, of_k: Any, value_width: int, dtype: str) -> tuple[Any, Any, Any]:
    """Return queries, keys and values."""
    shapes = of_q, of_k, (*of_k[:3], value_width)
    q, k, v = (reals(seed, shape, dtype) for seed, shape in enumerate(shapes))
    return q, k, v


def put(device: Device, arrays: Any) -> tuple[AccelRef, AccelRef, AccelRef]:
    """Put queries, keys and values."""
    q, k, v = map(device.put, arrays)
    return q, k, v


def near(device: Device, got: Any, exact: Any, dtype: str) -> None:
    """Compare with what sums of some hundred terms may be off, and with one rounding at the end.

    On a card weights of narrow floats are rounded to these, too.

    Parameters:
        dtype: of the operands.
    """
    off = 100 * EPS["float64" if dtype == "float64" else "float32"]
    if dtype in ("float16", "bfloat16") and device.name.startswith("gpu"):
        off = 4 * EPS[dtype]
    np.testing.assert_allclose(got.astype("float64"), exact, rtol=EPS[str(got.dtype)], atol=off)


@of_each_mask
@of_each_shape
@pytest.mark.parametrize("dtype", DTYPES)
def test_attention_is_what_it_is_defined_as(
    device: Device, of_q: Any, of_k: Any, value_width: int, options: Any, dtype: str
) -> None:
    q, k, v = drawn(of_q, of_k, value_width, dtype)
    y, lse = attention.attend(*put(device, (q, k, v)), lse=True, **options)
    exact, logarithm = attentions.attention(q, k, v, **options)
    assert lse is not None
    assert (y.dtype, lse.dtype) == (dtype, "float64" if dtype == "float64" else "float32")
    near(device, value(device, y), exact, dtype)
    near(device, value(device, lse), logarithm, dtype)


@pytest.mark.parametrize("causal", ["none", "top_left"])
@of_each_shape
def test_attention_and_its_gradients_are_pytorchs(
    device: Device, of_q: Any, of_k: Any, value_width: int, causal: Any
) -> None:
    torch = pytest.importorskip("torch")
    q, k, v = drawn(of_q, of_k, value_width, "float64")
    at = [torch.tensor(one, requires_grad=True) for one in (q, k, v)]
    of_torch = torch.nn.functional.scaled_dot_product_attention
    exact = of_torch(*at, is_causal=causal == "top_left", enable_gqa=True)
    dy = reals(9, tuple(exact.shape), "float64")
    exact.backward(torch.tensor(dy))
    refs = put(device, (q, k, v))
    y, lse = attention.attend(*refs, causal=causal, lse=True)
    assert lse is not None
    np.testing.assert_allclose(value(device, y), exact.detach(), rtol=1e-10, atol=1e-12)
    found = attention.attend_gradient(*refs, y, lse, device.put(dy), causal=causal)
    assert found.sink is None
    for ref, one in zip(found[:3], at, strict=True):
        np.testing.assert_allclose(value(device, ref), one.grad, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_gradients_are_near_those_of_double_precision(device: Device, dtype: str) -> None:
    arrays = drawn((2, 4, 33, 16), (2, 2, 40, 16), 16, dtype)
    dy = reals(9, (2, 4, 33, 16), dtype)

    def gradients(*arrays: Any) -> list[Any]:
        refs, come = put(device, arrays[:3]), device.put(arrays[3])
        y, lse = attention.attend(*refs, causal="top_left", lse=True)
        assert lse is not None
        made = attention.attend_gradient(*refs, y, lse, come, causal="top_left")
        return [value(device, ref) for ref in made[:3]]

    exact = gradients(*(one.astype("float64") for one in (*arrays, dy)))
    for got, one in zip(gradients(*arrays, dy), exact, strict=True):
        assert str(got.dtype) == dtype
        off = 8 * EPS[dtype] if dtype != "float32" else 100 * EPS[dtype]
        np.testing.assert_allclose(got.astype("float64"), one, atol=off, rtol=EPS[dtype])


@pytest.mark.parametrize(
    "options",
    [
        {"causal": "bottom_right", "window": 3, "alibi": True},
        {"rate": 0.4, "seed": 5, "offset": 3, "causal": "top_left"},
        {"scale": 0.7},
    ],
    ids=str,
)
@pytest.mark.parametrize("lengths", [True, False])
def test_finite_differences_are_the_gradients(
    device: Device, options: dict[str, Any], *, lengths: bool
) -> None:
    arrays = [*drawn((2, 4, 6, 5), (2, 2, 7, 5), 3, "float64"), reals(8, (4,), "float64")]
    dy = reals(9, (2, 4, 6, 3), "float64")
    given: dict[str, Any] = dict(options)
    if lengths:
        given["lengths_q"] = device.put(np.array([6, 4]))
        given["lengths_k"] = device.put(np.array([5, 7], "int32"))

    def attended(arrays: list[Any]) -> Any:
        refs, sink = put(device, arrays[:3]), device.put(arrays[3])
        return attention.attend(*refs, sink=sink, lse=True, **given)

    y, lse = attended(arrays)
    refs, sink = put(device, arrays[:3]), device.put(arrays[3])
    made = attention.attend_gradient(
        *refs, y, lse, device.put(dy), sink=sink, sink_gradient=True, **given
    )
    assert made.sink is not None
    found = [value(device, ref) for ref in (*made[:3], made.sink)]
    h = 1e-6
    for at, got in enumerate(found):
        for seed in range(2):
            step = reals(seed, got.shape, "float64")
            up, down = (
                [x + s * step if one == at else x for one, x in enumerate(arrays)] for s in (h, -h)
            )
            change = (value(device, attended(up).y) - value(device, attended(down).y)) / (2 * h)
            np.testing.assert_allclose(
                (change * dy).sum(), (got * step).sum(), rtol=1e-6, atol=1e-8
            )


@given(
    seed=seeds,
    queries=st.integers(0, 9),
    keys=st.integers(0, 9),
    causal=st.sampled_from(["none", "top_left", "bottom_right"]),
    window=st.integers(0, 4),
    rate=st.sampled_from([0.0, 0.5]),
    with_sink=st.booleans(),
    data=st.data(),
)
def test_any_mask_of_any_lengths_is_the_definition(
    device: Device,
    seed: int,
    queries: int,
    keys: int,
    causal: Any,
    window: int,
    rate: float,
    data: st.DataObject,
    *,
    with_sink: bool,
) -> None:
    q, k, v = drawn((2, 4, queries, 3), (2, 2, keys, 3), 2, "float64")
    options: dict[str, Any] = {"causal": causal, "rate": rate, "seed": seed, "offset": seed % 7}
    if causal != "none":
        options["window"] = window
    lengths = [
        data.draw(st.none() | st.lists(st.integers(0, most), min_size=2, max_size=2))
        for most in (queries, keys)
    ]
    sink = reals(seed, (4,), "float64") if with_sink else None
    names = ("lengths_q", "lengths_k", "sink")
    extra = {
        name: one for name, one in zip(names, (*lengths, sink), strict=True) if one is not None
    }
    for batch, of_keys in enumerate(lengths[1] or ()):  # what is behind the end is not read
        k[batch, :, of_keys:] = v[batch, :, of_keys:] = np.nan
    refs = [
        place(device, one, LAYOUTS[(seed + at) % len(LAYOUTS)]) for at, one in enumerate((q, k, v))
    ]
    options |= {name: device.put(np.asarray(one)) for name, one in extra.items()}
    y, lse = attention.attend(*refs, lse=True, **options)
    exact, logarithm = attentions.attention(q, k, v, **(options | extra))
    np.testing.assert_allclose(value(device, y), exact, rtol=1e-10, atol=1e-12)
    assert lse is not None
    rows = np.arange(queries) < np.asarray(lengths[0] or [queries, queries])[:, None, None]
    got = value(device, lse)
    both = np.broadcast_to(rows, got.shape)
    np.testing.assert_allclose(got[both], logarithm[both], rtol=1e-10, atol=1e-10)


def test_dropout_drops_by_the_words_of_philox_whatever_the_parts(device: Device) -> None:
    q, k, v = drawn((1, 2, 300, 4), (1, 2, 700, 4), 4, "float32")
    options: dict[str, Any] = {"rate": 0.3, "seed": 2**40 + 1, "offset": 11}
    y, _ = attention.attend(*put(device, (q, k, v)), **options)
    exact, _ = attentions.attention(q, k, v, **options)
    near(device, value(device, y), exact, "float32")
    factors = attentions.kept(options, (1, 2, 300, 700))
    assert 0.69 < (factors > 0).mean() < 0.71


def test_a_query_that_sees_nothing_gets_nothing(device: Device) -> None:
    q, k, v = drawn((1, 1, 5, 4), (1, 1, 3, 4), 4, "float32")
    refs = put(device, (q, k, v))
    y, lse = attention.attend(*refs, causal="bottom_right", lse=True)
    assert lse is not None
    got, logarithm = value(device, y), value(device, lse)
    assert not got[0, 0, :2].any()
    assert np.isneginf(logarithm[0, 0, :2]).all()
    made = attention.attend_gradient(
        *refs, y, lse, device.put(np.ones_like(got)), causal="bottom_right"
    )
    dq = value(device, made.q)
    assert not dq[0, 0, :2].any()
    assert np.isfinite(value(device, made.k)).all()


@pytest.mark.parametrize(("batch", "queries", "keys"), [(0, 3, 2), (2, 0, 2), (2, 3, 0)])
def test_of_nothing_the_gradients_are_nothing(
    device: Device, batch: int, queries: int, keys: int
) -> None:
    refs = put(device, drawn((batch, 4, queries, 8), (batch, 2, keys, 8), 5, "float32"))
    sink = device.put(np.ones(4, "float32"))
    options: dict[str, Any] = {"rate": 0.5, "alibi": True, "sink": sink}
    y, lse = attention.attend(*refs, lse=True, **options)
    assert lse is not None
    made = attention.attend_gradient(*refs, y, lse, y, sink_gradient=True, **options)
    assert made.sink is not None
    for ref, of in zip((y, *made[:3], made.sink), (y, *refs, sink), strict=True):
        got = value(device, ref)
        assert got.shape == of.shape
        assert not got.any()


def test_shapes_that_only_the_device_knows(device: Device) -> None:
    q, k, v = drawn((1, 2, 5, 8), (1, 2, 5, 8), 8, "float64")
    unknown = [device.run(lambda x: x.copy(), device.put(x), pure=True) for x in (q, k, v)]
    y, lse = attention.attend(unknown[0], unknown[1], unknown[2], lse=True)
    assert lse is not None
    made = attention.attend_gradient(unknown[0], unknown[1], unknown[2], y, lse, y)
    exact, _ = attentions.attention(q, k, v)
    cache = attention.KVCache(device, heads=2, width=8, pages=3, page_size=4, dtype="float64")
    cache.append(unknown[1], unknown[2])
    last, _ = cache.attend(device.run(lambda x: x[:, :, -1:].copy(), device.put(q), pure=True))
    for ref, expected in ((y, exact), (last, exact[:, :, -1:])):
        np.testing.assert_allclose(value(device, ref), expected, rtol=1e-11)
    assert np.isfinite(value(device, made.v)).all()


def test_large_scores_do_not_overflow(device: Device) -> None:
    q, k, v = (1e3 * one for one in drawn((1, 2, 9, 8), (1, 2, 9, 8), 8, "float32"))
    y, _ = attention.attend(*put(device, (q, k, v)))
    weights = np.einsum("bhid,bhjd->bhij", q.astype("float64"), k) / 8**0.5
    best = np.take_along_axis(v, weights.argmax(axis=-1)[..., None], axis=2)
    np.testing.assert_allclose(value(device, y), best, rtol=1e-5)


def test_lengths_beyond_the_arrays_are_an_error(device: Device) -> None:
    refs = put(device, drawn((2, 2, 3, 4), (2, 2, 5, 4), 4, "float32"))
    wrong, right = device.put(np.array([6, -1])), device.put(np.array([1, 2]))
    y, lse = attention.attend(*refs, lengths_k=right, lse=True)
    assert lse is not None
    for made in (
        attention.attend(*refs, lengths_k=wrong).y,
        attention.attend_gradient(*refs, y, lse, y, lengths_k=wrong).v,
    ):
        with pytest.raises(DependencyFailed, match="2 of lengths_k are not from 0 to 5") as failed:
            value(device, made)
        assert isinstance(failed.value.__cause__, OutOfBounds)
    with pytest.raises(DependencyFailed, match="1 of lengths_q are not from 0 to 3"):
        value(device, attention.attend(*refs, lengths_q=device.put(np.array([4, 3]))).y)


def test_a_graph_attends_and_refuses_what_has_to_be_judged(device: Device) -> None:
    q, k, v = drawn((1, 2, 5, 8), (1, 2, 5, 8), 8, "float64")
    refs, lengths = put(device, (q, k, v)), device.put(np.array([3]))
    with device.graph() as graph:
        y, _ = attention.attend(*refs, causal="top_left")
    graph.launch()
    exact, _ = attentions.attention(q, k, v, causal="top_left")
    np.testing.assert_allclose(value(device, y), exact, rtol=1e-11)
    with device.graph() as judged:
        attention.attend(*refs, lengths_k=lengths)
    with pytest.raises(InvalidArgument, match="Attend cannot be in a graph: the host judges"):
        judged.launch().result(30)
    cache = attention.KVCache(device, heads=2, width=8, pages=3, dtype="float64")
    with device.graph(), pytest.raises(InvalidArgument, match="which pages it uses"):
        cache.append(refs[1], refs[2])


def test_mistakes_are_refused_with_what_and_what_was_expected(device: Device) -> None:
    q, k = array.zeros(device, (2, 4, 3, 8)), array.zeros(device, (2, 2, 5, 8))
    wide = array.zeros(device, (2, 2, 5, 300))
    three, other = array.zeros(device, (2, 3, 5, 8)), array.zeros(device, (2, 2, 6, 8))
    double, flat = array.zeros(device, (2, 2, 5, 8), "float64"), array.zeros(device, (2, 8))
    floats, few = array.zeros(device, (2,)), array.zeros(device, (3,), "int32")
    y, narrow = array.zeros(device, (2, 4, 3, 8)), array.zeros(device, (2, 4, 3), "float64")
    lse, short = array.zeros(device, (2, 4, 3)), array.zeros(device, k.shape)
    with refused(device, "q is float32[2, 8]", "(batch, heads, tokens, features)"):
        attention.attend(flat, k, k)
    with refused(device, "v is float32[2, 2, 5, 300]", "1 to 256"):
        attention.attend(q, k, wide)
    with refused(device, "v is float32[2, 2, 6, 8]", "[2, 2, 5, 8]"):
        attention.attend(q, k, other)
    with refused(device, "q is float32[2, 4, 3, 8]", "a multiple of the 3"):
        attention.attend(q, three, three)
    with refused(device, "one dtype", "v is float64"):
        attention.attend(q, k, double)
    with refused(device, "lengths_k is float32[2]", "int32 or int64"):
        attention.attend(q, k, k, lengths_k=floats)
    with refused(device, "lengths_q is int32[3]", "[2]"):
        attention.attend(q, k, k, lengths_q=few)
    with refused(device, "sink is float32[2]", "[4]"):
        attention.attend(q, k, k, sink=floats)
    with refused(device, "causal is 'yes'", "top_left, bottom_right"):
        attention.attend(q, k, k, causal="yes")  # type: ignore[arg-type]
    with refused(device, "window is 3", "say where"):
        attention.attend(q, k, k, window=3)
    with refused(device, "window is -1"):
        attention.attend(q, k, k, window=-1, causal="top_left")
    with refused(device, "scale is 'x'"):
        attention.attend(q, k, k, scale="x")  # type: ignore[arg-type]
    with refused(device, "rate is 1"):
        attention.attend(q, k, k, rate=1)
    with refused(device, "lse is float64[2, 4, 3]", "lse=True"):
        attention.attend_gradient(q, k, k, y, narrow, y)
    with refused(device, "y is float32[2, 2, 5, 8]", "[2, 4, 3, 8]"):
        attention.attend_gradient(q, k, k, short, lse, y)
    with refused(device, "sink_gradient is True"):
        attention.attend_gradient(q, k, k, y, lse, y, sink_gradient=True)


def test_a_dtype_that_is_no_float_is_refused(device: Device) -> None:
    x = array.zeros(device, (1, 1, 2, 4), "int32")
    with pytest.raises(UnsupportedDtype, match="int32"):
        attention.attend(x, x, x)
