"""Tensors made of numbers and shapes."""

import math
from typing import Any

import numpy as np

from accel_lab.compute.arrays.dtypes import canonical, numpy_dtype
from accel_lab.libraries.array import library as array
from accel_lab.libraries.rng import library as rng
from accel_lab.onnx.node import Call, Node
from accel_lab.onnx.operators.elementwise import no_dtype, onnx_dtype
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import SMALL, cast, dtype_of, ints

_VALUES = {
    "value": None,
    "value_float": "float32",
    "value_floats": "float32",
    "value_int": "int64",
    "value_ints": "int64",
}


def _no_value(node: Node) -> str | None:
    return None if node.attributes.keys() <= _VALUES.keys() else "a value of text or a sparse one"


@operator("Constant", anywhere=True, refuses=_no_value)
def constant(call: Call) -> Any:
    """Return what stands in the file."""
    ((name, value),) = call.node.attributes.items()
    made = np.asarray(value, _VALUES[name])
    return made if made.size <= SMALL else call.ref(made)


@operator("ConstantOfShape", host=(0,), anywhere=True)
def constant_of_shape(call: Call, shape: Any) -> Any:
    """Return one number everywhere."""
    extents, value = ints(shape) if shape.size else (), call.get("value")
    number = np.zeros(1, "float32") if value is None else value
    if math.prod(extents) <= SMALL:
        return np.full(extents, number.reshape(()))
    return array.full(call.device, extents, number.reshape(()).item(), dtype_of(number))


@operator("Shape", anywhere=True)
def shape_of(call: Call, x: Any) -> Any:
    """Return the extents, or some of them."""
    return np.asarray(x.shape[call.get("start", 0) : call.get("end")], np.int64)


@operator("Size", anywhere=True)
def size_of(call: Call, x: Any) -> Any:
    """Return how many elements there are."""
    return np.asarray(x.size, np.int64)


@operator("Range", host=(0, 1, 2), anywhere=True)
def numbers(call: Call, start: Any, limit: Any, delta: Any) -> Any:
    """Return numbers at equal distances."""
    dtype = dtype_of(start)
    count = max(0, math.ceil((limit.item() - start.item()) / delta.item()))
    return cast(np.arange(count) * delta + start, dtype)


@operator("EyeLike", anywhere=True, refuses=no_dtype("dtype"))
def eye_like(call: Call, x: Any) -> Any:
    """Return a matrix with ones on a diagonal."""
    dtype = canonical(onnx_dtype(call.get("dtype"))) if call.get("dtype") else dtype_of(x)
    rows, columns = x.shape
    return array.eye(call.device, rows, columns, call.get("k", 0), dtype)


@operator("OneHot", host=(1, 2))
def one_hot(call: Call, indices: Any, depth: Any, values: Any) -> Any:
    """Return one value at an index along a new axis, another elsewhere."""
    count, axis = int(depth.reshape(())), call.get("axis", -1)
    at = axis + indices.ndim + 1 if axis < 0 else axis
    wide = cast(indices, "int64")
    known = array.expand_dims(array.where(wide < 0, wide + count, wide), at)
    line = array.arange(call.device, count)
    places = line.reshape((count,) + (1,) * (indices.ndim - at))
    off, on = (call.ref(values[k]) for k in (0, 1))
    return array.where(array.equal(known, places), on, off)


def _dtype(call: Call, x: Any = None) -> str:
    code = call.get("dtype", 0)
    return canonical(onnx_dtype(code)) if code else "float32" if x is None else dtype_of(x)


def _seed(call: Call) -> int | None:
    seed = call.get("seed")
    return None if seed is None else int(np.float32(seed).view(np.uint32))


@operator("RandomUniform", "RandomUniformLike", pure=False, refuses=no_dtype("dtype"))
def random_uniform(call: Call, x: Any = None) -> Any:
    """Return numbers that are spread evenly."""
    shape = tuple(call.get("shape", ())) if x is None else x.shape
    low, high = call.get("low", 0.0), call.get("high", 1.0)
    drawn = rng.uniform(call.device, shape, "float32", low=low, high=high, seed=_seed(call))
    return cast(drawn, _dtype(call, x))


@operator("RandomNormal", "RandomNormalLike", pure=False, refuses=no_dtype("dtype"))
def random_normal(call: Call, x: Any = None) -> Any:
    """Return numbers that are distributed normally."""
    shape = tuple(call.get("shape", ())) if x is None else x.shape
    mean, scale = call.get("mean", 0.0), call.get("scale", 1.0)
    drawn = rng.normal(call.device, shape, "float32", mean=mean, std=scale, seed=_seed(call))
    return cast(drawn, _dtype(call, x))


@operator("Bernoulli", pure=False, refuses=no_dtype("dtype"))
def bernoulli(call: Call, x: Any) -> Any:
    """Return 1 with the probability that each element is."""
    drawn = rng.uniform(call.device, x.shape, "float32", seed=_seed(call))
    return cast(drawn <= cast(x, "float32"), _dtype(call, x))


@operator("MelWeightMatrix", host=(0, 1, 2, 3, 4), anywhere=True)
def mel_weight_matrix(call: Call, *given: Any) -> Any:
    """Return the weights that make mel bins of a spectrum."""
    bins, length, rate, low, high = (one.reshape(()).item() for one in given)
    points = np.arange(bins + 2) * ((_mel(high) - _mel(low)) / (bins + 2)) + _mel(low)
    places = np.floor((length + 1) * (700 * (10 ** (points / 2595) - 1)) / rate).astype(int)
    rows = length // 2 + 1
    made = np.zeros((rows, bins))
    for at in range(bins):
        left, centre, right = places[at : at + 3]
        if centre == left:
            made[centre, at] = 1
        else:
            made[left : centre + 1, at] = (np.arange(left, centre + 1) - left) / (centre - left)
        if right > centre:
            made[centre:right, at] = (right - np.arange(centre, right)) / (right - centre)
    return made.astype(numpy_dtype(canonical(onnx_dtype(call.get("output_datatype", 1)))))


def _mel(hertz: float) -> float:
    return float(2595 * np.log10(1 + hertz / 700))
