"""The contract of `libraries.blas_lt`: the definitions in long double, laws of the backward pass.

GELU is the tanh form of Hendrycks and Gimpel (arXiv 1606.08415), as in the manual of cuBLASLt. How
far a product may be off is Higham's bound; no activation steepens an error by more than 1.13.
"""

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab import AccelRef, System, array, blas_lt
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.device import Device
from accel_lab.compute.events.lifecycle import BuffersRebuilt
from accel_lab.libraries.blas_lt import FusedMatmul, Matmul
from tests.contract.products import TRANS, turn, turned_shape
from tests.contract.samples import (
    Layout,
    assert_equal,
    assert_same,
    extents,
    layouts,
    place,
    reals,
    refused,
    seeds,
    small,
    value,
)
from tests.contract.tolerances import EPS, SMALLEST, assert_near, wide

FLOATS = ("float16", "bfloat16", "float32", "float64")
ACTIVATIONS: tuple[blas_lt.Activation, ...] = ("none", "relu", "gelu")
STEEPEST = 1.13
EXTRA = 24  # roundings of a bias, a factor, scales and an activation
EPILOGUES: dict[str, dict[str, Any]] = {
    "DEFAULT": {},
    "RELU": {"activation": "relu"},
    "RELU_AUX": {"activation": "relu", "keep_aux": True},
    "BIAS": {"bias": True},
    "RELU_BIAS": {"activation": "relu", "bias": True},
    "RELU_AUX_BIAS": {"activation": "relu", "keep_aux": True, "bias": True},
    "DRELU": {"activation": "relu", "aux": True},
    "DRELU_BGRAD": {"activation": "relu", "aux": True, "bias_gradient": "d"},
    "GELU": {"activation": "gelu"},
    "GELU_AUX": {"activation": "gelu", "keep_aux": True},
    "GELU_BIAS": {"activation": "gelu", "bias": True},
    "GELU_AUX_BIAS": {"activation": "gelu", "keep_aux": True, "bias": True},
    "DGELU": {"activation": "gelu", "aux": True},
    "DGELU_BGRAD": {"activation": "gelu", "aux": True, "bias_gradient": "d"},
    "BGRADA": {"bias_gradient": "a"},
    "BGRADB": {"bias_gradient": "b"},
}
"""cuBLASLt's sixteen, and how each is asked for."""


def roundings(device: Device, k: int, made: str, operand: str = "") -> float:
    """Return how often a sum of k terms is rounded, all that is done to it included.

    cuBLASLt may round a half before its bias and before its activation, and takes tanh of 11 bits
    there; the tensor cores add products of float8 with 13 bits behind the point.
    """
    often: float = k + EXTRA
    if device.name.startswith("gpu"):
        often += EPS[made] / EPS["float32"] if made in ("float16", "bfloat16") else 0
        often += 2.0**-13 / EPS["float32"] if operand.startswith("float8") else 0
    return often


def gelu(x: Any) -> Any:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / wide(np.pi)) * (x + wide(0.044715) * x**3)))


def act(activation: str, x: Any) -> Any:
    return {"none": x, "relu": np.where(x > 0, x, 0), "gelu": gelu(x)}[activation]


def steepness(activation: str, x: Any) -> Any:
    """Return the derivative, of GELU by central differences of fourth order."""
    if activation == "relu":
        return (x > 0).astype(np.longdouble)
    h = wide(1e-4)
    near, far = gelu(x + h) - gelu(x - h), gelu(x + 2 * h) - gelu(x - 2 * h)
    return (8 * near - far) / (12 * h)


def mask_of(x: Any) -> Any:
    """Return the bits of what is above 0, as NumPy packs them, in rows of 128 bits."""
    bits = np.zeros((len(x), -(-x.shape[1] // 128) * 128), np.uint8)
    bits[:, : x.shape[1]] = x > 0
    return np.packbits(bits, axis=1, bitorder="little")


def mask_bits(aux: Any, columns: int) -> Any:
    return np.unpackbits(aux, axis=1, bitorder="little")[:, :columns]


@settings(max_examples=80)
@given(
    seed=seeds,
    shape=st.tuples(extents, extents, st.one_of(extents, st.just(33))),
    dtype=st.sampled_from(FLOATS),
    activation=st.sampled_from(ACTIVATIONS),
    trans=st.tuples(st.sampled_from(TRANS), st.sampled_from(TRANS)),
    layout=layouts,
)
def test_a_product_is_added_to_and_activated(
    device: Device,
    seed: int,
    shape: tuple[int, int, int],
    dtype: str,
    activation: blas_lt.Activation,
    trans: tuple[blas_lt.Trans, blas_lt.Trans],
    layout: Layout,
) -> None:
    (m, n, k), (trans_a, trans_b) = shape, trans
    a = reals(seed, turned_shape(m, k, trans_a), dtype)
    b = reals(seed + 1, turned_shape(k, n, trans_b), dtype)
    c, bias = reals(seed + 2, (m, n), dtype), reals(seed + 3, (n,), dtype)
    on = [place(device, x, layout) for x in (a, b, c, bias)]
    left, right = turn(wide(a), trans_a), turn(wide(b), trans_b)
    exact = 1.5 * (left @ right) - 2 * wide(c) + wide(bias)
    size = 1.5 * (np.abs(left) @ np.abs(right)) + 2 * np.abs(wide(c)) + np.abs(wide(bias))
    for out in (None, on[2]):  # the second time in place
        got = blas_lt.matmul(
            *on,
            alpha=1.5,
            beta=-2,
            trans_a=trans_a,
            trans_b=trans_b,
            activation=activation,
            out=out,
        )
        assert_near(
            value(device, got),
            act(activation, exact),
            dtype,
            magnitude=STEEPEST * size,
            operations=roundings(device, k, dtype),
        )


def test_what_a_factor_of_zero_scales_is_not_read(device: Device) -> None:
    nan, one = (array.full(device, (4, 4), number, "float32") for number in (float("nan"), 1.0))
    bias = array.full(device, (4,), -3.0, "float32")
    got = value(device, blas_lt.matmul(nan, nan, one, bias, alpha=0, beta=2))
    assert (got == -1).all()
    whole = blas_lt.fused_matmul(nan, nan, one, bias, alpha=0, beta=2, activation="relu")
    assert (value(device, whole.d) == 0).all()
    assert (value(device, blas_lt.matmul(one, one, nan, beta=0)) == 4).all()


@pytest.mark.parametrize("dtype", [*FLOATS, "int8"])
@pytest.mark.parametrize("name", EPILOGUES)
def test_each_of_the_sixteen_is_had_by_its_definition(
    device: Device, name: str, dtype: str
) -> None:
    options = dict(EPILOGUES[name])
    made = "int32" if dtype == "int8" else dtype
    if made == "int32" and options.get("activation") == "gelu":
        pytest.skip("there is no gelu of integers")
    m, n, k, draw = 5, 133, 17, small if dtype == "int8" else reals
    a, b, bias = draw(0, (m, k), dtype), draw(1, (k, n), dtype), draw(2, (n,), made)
    before = draw(3, (m, n), made)  # activation, in a forward pass that is long done
    activation, backward = options.get("activation", "none"), options.pop("aux", False)
    if backward:
        kept = mask_of(before) if activation == "relu" else before
        options["aux"] = device.put(kept)
    if options.pop("bias", False):
        options["bias"] = device.put(bias)
    message = FusedMatmul(device.put(a), device.put(b), **options)
    assert message.epilogue == name
    got = device.ask(message)
    exact = wide(a) @ wide(b) + (wide(bias) if "bias" in options else 0)
    size = np.abs(wide(a)) @ np.abs(wide(b)) + np.abs(wide(bias))
    often = roundings(device, k, made)
    bound: dict[str, Any] = {"magnitude": STEEPEST * size, "operations": often}
    final = act(activation, exact)
    if backward:
        final = exact * steepness(activation, wide(before))
    near(value(device, got.d), final, made, **bound)
    assert (got.aux is None) == ("keep_aux" not in options)
    if got.aux is not None and activation == "gelu":
        near(value(device, got.aux), exact, made, **bound)
    elif got.aux is not None:
        clear = np.abs(exact) > size * often * EPS.get(made, 0)
        bits = mask_bits(value(device, got.aux), n)
        assert_equal(bits[clear], (exact > 0).astype(np.uint8)[clear])
    assert (got.bias_gradient is None) == ("bias_gradient" not in options)
    if got.bias_gradient is not None:
        terms = {"a": (wide(a), 1), "b": (wide(b), 0), "d": (final, 0)}
        of, axis = terms[options["bias_gradient"]]
        off = np.abs(of) if options["bias_gradient"] != "d" else STEEPEST * size * often
        near(
            value(device, got.bias_gradient),
            of.sum(axis),
            made,
            magnitude=off.sum(axis),
            operations=of.shape[axis] + EXTRA,
        )


def near(got: Any, exact: Any, dtype: str, **bound: Any) -> None:
    """Compare; integers are equal."""
    if dtype == "int32":
        assert_equal(got, exact.astype(np.int32))
    else:
        assert_near(got, exact, dtype, **bound)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_backward_pass_is_the_derivative_of_the_forward_pass(
    device: Device, activation: blas_lt.Activation
) -> None:
    """Of the sum of all elements, along a random direction, by central differences."""
    x, w, bias, step = (reals(seed, shape, "float64") for seed, shape in enumerate(_SHAPES))
    weights = reals(9, (6, 2), "float64")  # of a second layer, whose outputs are summed

    def loss(first: Any) -> float:
        hidden = blas_lt.matmul(
            device.put(x), device.put(first), bias=device.put(bias), activation=activation
        )
        return float(value(device, blas_lt.matmul(hidden, device.put(weights))).sum())

    _, aux, _, _ = blas_lt.fused_matmul(
        device.put(x), device.put(w), bias=device.put(bias), activation=activation, keep_aux=True
    )
    assert aux is not None
    ones = array.full(device, (4, 2), 1.0, "float64")
    back = blas_lt.fused_matmul(
        ones, device.put(weights), trans_b="t", activation=activation, aux=aux, bias_gradient="d"
    )
    gradient = value(device, blas_lt.matmul(device.put(x), back.d, trans_a="t"))
    assert back.bias_gradient is not None
    h = 1e-6
    slope = (loss(w + h * step) - loss(w - h * step)) / (2 * h)
    np.testing.assert_allclose((gradient * step).sum(), slope, rtol=1e-6)
    np.testing.assert_allclose(value(device, back.bias_gradient), value(device, back.d).sum(0))


_SHAPES = ((4, 3), (3, 6), (6,), (3, 6))


@pytest.mark.parametrize("rows", ["tensor", "row", "mixed"])
@pytest.mark.parametrize(
    ("left", "right"),
    [("float8_e4m3fn", "float8_e4m3fn"), ("float8_e4m3fn", "float8_e5m2"), ("int8", "int8")],
)
def test_narrow_operands_have_scales(device: Device, left: str, right: str, rows: str) -> None:
    m, n, k = 16, 48, 32
    draw = small if left == "int8" else reals
    a, b = draw(0, (m, k), left), draw(1, (k, n), right)
    rng = np.random.default_rng(2)
    scale_a = np.float32(rng.uniform(0.5, 2, m if rows == "row" else ()))
    scale_b = np.float32(rng.uniform(0.5, 2, () if rows == "tensor" else n))
    column = np.expand_dims(scale_a, -1) if rows == "row" else scale_a
    for made in ("float32", "bfloat16", "float16"):
        bias = reals(3, (n,), made)
        got = blas_lt.fused_matmul(
            device.put(a),
            device.put(b),
            bias=device.put(bias),
            scale_a=device.put(np.asarray(scale_a)),
            scale_b=device.put(np.asarray(scale_b)),
            activation="gelu",
            amax=True,
            dtype=made,
        )
        scale = wide(column) * wide(scale_b)
        exact = act("gelu", wide(a) @ wide(b) * scale + wide(bias))
        size = np.abs(wide(a)) @ np.abs(wide(b)) * scale + np.abs(wide(bias))
        often = roundings(device, k, made, left)
        bound = {"magnitude": STEEPEST * size, "operations": often}
        assert_near(value(device, got.d), exact, made, **bound)
        assert got.amax is not None
        largest = value(device, got.amax)
        assert largest.dtype == np.float32
        assert_near(largest, np.abs(exact).max(), made, magnitude=size.max(), operations=often)


@pytest.mark.parametrize("made", ["float8_e4m3fn", "float8_e5m2"])
def test_a_float8_product_is_scaled_clipped_and_rounded_once(device: Device, made: str) -> None:
    a, b = (reals(seed, (32, 32), "float8_e4m3fn") for seed in (0, 1))
    scale_d, largest = np.float32(48.0), {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}[made]
    scale_d *= np.float32(largest / 448)
    got = blas_lt.fused_matmul(
        device.put(a), device.put(b), scale_d=device.put(np.asarray(scale_d)), amax=True, dtype=made
    )
    exact = wide(a) @ wide(b)
    size = np.abs(wide(a)) @ np.abs(wide(b))
    assert got.amax is not None
    amax = value(device, got.amax)
    often = roundings(device, 32, made, "float8_e4m3fn")
    assert_near(amax, np.abs(exact).max(), "float32", magnitude=size.max(), operations=often)
    d = value(device, got.d)
    assert d.dtype == numpy_dtype(made)
    scaled = exact * wide(scale_d)
    assert (np.abs(scaled) > 1.1 * largest).any(), "nothing would be clipped"
    clipped = np.clip(scaled, -largest, largest)
    off = EPS[made] / 2 * np.abs(clipped) + SMALLEST[made] + often * EPS["float32"] * size * scale_d
    assert (np.abs(wide(d) - clipped) <= off).all()


def test_int8_is_exact_and_wraps_in_int32(device: Device) -> None:
    a = np.full((3, 140_000), -128, np.int8)
    b = np.full((140_000, 2), -128, np.int8)
    c = np.array([[1, -2]] * 3, np.int32)
    on_a, on_b, on_c = (device.put(x) for x in (a, b, c))
    got = blas_lt.fused_matmul(on_a, on_b, on_c, beta=3)
    exact = np.full((3, 2), 140_000 * 128 * 128, np.int64) + 3 * c.astype(np.int64)
    assert_equal(value(device, got.d), exact.astype(np.uint32).astype(np.int32))
    drawn = np.random.default_rng(0).integers(-128, 128, (7, 9), np.int8)
    on = device.put(drawn)
    got = blas_lt.fused_matmul(on, on, trans_b="t")
    assert_equal(value(device, got.d), drawn.astype(np.int32) @ drawn.T.astype(np.int32))


@pytest.mark.parametrize("shape", [(0, 5, 3), (3, 0, 5), (3, 5, 0), (1, 1, 1), (1, 300, 1)])
def test_no_element_and_one_are_products_too(device: Device, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b, bias = (small(seed, s, "float32") for seed, s in enumerate(((m, k), (k, n), (n,))))
    on_a, on_b = device.put(a), device.put(b)
    got = blas_lt.fused_matmul(
        on_a, on_b, bias=device.put(bias), activation="relu", keep_aux=True, amax=True
    )
    before = a @ b + bias
    d = np.maximum(before, 0)
    assert_equal(value(device, got.d), d)
    assert got.aux is not None
    assert got.amax is not None
    bits = mask_bits(value(device, got.aux), n)
    assert_equal(bits[before != 0], (d > 0).astype(np.uint8)[before != 0])  # of 0 cuBLASLt's is 1
    assert value(device, got.amax) == d.max(initial=0)
    summed = blas_lt.fused_matmul(on_a, on_b, bias_gradient="a").bias_gradient
    assert summed is not None
    assert_equal(value(device, summed), a.sum(1))


def test_tuning_answers_and_changes_no_product(device: Device) -> None:
    shapes = (64, 32), (32, 48), (48,)
    a, b, bias = (device.put(reals(seed, one, "float32")) for seed, one in enumerate(shapes))
    before = value(device, blas_lt.matmul(a, b, bias=bias, activation="relu"))
    tuned = blas_lt.tune(a, b, bias=bias, activation="relu").result(timeout_s=30)
    assert isinstance(tuned, blas_lt.Tuned)
    assert 0 <= tuned.best_us <= tuned.first_us
    assert (tuned.algorithms == 0) == (tuned.first_us == 0)
    after = value(device, blas_lt.matmul(a, b, bias=bias, activation="relu"))
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"activation": "tanh"}, ("activation is 'tanh'", "'none', 'relu' or 'gelu'")),
        ({"keep_aux": True}, ("keep_aux", "need an activation")),
        ({"bias_gradient": "d"}, ("bias_gradient 'd'", "an aux")),
        ({"bias_gradient": "a", "activation": "relu"}, ("bias_gradient 'a'", "no activation")),
        ({"dtype": "float64"}, ("a product of float32 is float32, not float64",)),
        ({"trans_a": "t"}, ("k is 3 in a float32[3, 4]", "and 4 in b float32[4, 5]")),
        ({"bias": (4,)}, ("bias is float32[4]", "float32[5]")),
        ({"c": (3, 4), "beta": 1}, ("c is float32[3, 4]", "float32[3, 5]")),
        ({"c": (3, 5)}, ("without beta",)),
        ({"aux": (3, 5), "activation": "relu"}, ("aux is float32[3, 5]", "uint8[3, 16]")),
        ({"aux": (3, 4), "activation": "gelu"}, ("aux is float32[3, 4]", "float32[3, 5]")),
        ({"scale_a": ()}, ("scale_a scales float8", "alpha scales others")),
        ({"scale_d": ()}, ("scale_d scales a float8 product",)),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_by_name(
    device: Device, options: dict[str, Any], words: tuple[str, ...]
) -> None:
    a, b = array.zeros(device, (3, 4), "float32"), array.zeros(device, (4, 5), "float32")
    options = {
        name: array.zeros(device, one, "float32") if isinstance(one, tuple) else one
        for name, one in options.items()
    }
    with refused(device, "FusedMatmul", *words):
        blas_lt.fused_matmul(a, b, **options)
    with refused(device, "Tune", *words):
        blas_lt.tune(a, b, **options)


def test_dtypes_that_do_not_go_together_are_refused(device: Device) -> None:
    made = {d: array.zeros(device, (3, 3), d) for d in ("float8_e4m3fn", "int8", "float32")}
    with refused(device, "both float8", "int8[3, 3]"):
        blas_lt.fused_matmul(made["float8_e4m3fn"], made["int8"])
    with refused(device, "int32 has no gelu"):
        blas_lt.fused_matmul(made["int8"], made["int8"], activation="gelu")
    number = array.zeros(device, (), "float32")
    with refused(device, "int8 to int32"):
        blas_lt.fused_matmul(made["int8"], made["int8"], scale_a=number)
    with refused(device, "activation is 'tanh'"):
        device.ask(Matmul(made["float32"], made["float32"], activation="tanh"))  # type: ignore[arg-type]


@pytest.fixture
def lab(backend: Any) -> Iterator[System]:
    with System(backend.__name__.rpartition(".")[2], devices=1, recover="replay") as system:
        yield system


def test_products_are_there_again_after_a_kill(lab: System) -> None:
    (device,) = lab.devices
    x, w, bias = (device.put(reals(s, shape, "float32")) for s, shape in enumerate(_SHAPES[:3]))
    made: list[AccelRef] = [blas_lt.matmul(x, w, bias=bias, activation="gelu")]
    kept = blas_lt.fused_matmul(x, w, bias=bias, activation="relu", keep_aux=True, amax=True)
    made += [ref for ref in kept if ref is not None]
    before = [value(device, ref) for ref in made]
    mark = lab.events.published
    os.kill(device.run(os.getpid).result(timeout_s=30), signal.SIGKILL)
    fact = lab.events.wait_for(BuffersRebuilt, 60, since=mark)
    assert isinstance(fact, BuffersRebuilt)
    assert fact.lost == 0
    for ref, one in zip(made, before, strict=True):
        assert_same(value(device, ref), one)
