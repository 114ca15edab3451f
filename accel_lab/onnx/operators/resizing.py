"""Images resized and sampled: weights are computed in the notebook, and applied on the device."""

import math
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from accel_lab.libraries.array import library as array
from accel_lab.onnx.node import Call, Node
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import axis_from_0, cast, dtype_of, like

Line = npt.NDArray[Any]


def _no_mode(node: Node) -> str | None:
    mode = node.get("coordinate_transformation_mode", "half_pixel")
    return None if mode in _COORDINATES else f"coordinate_transformation_mode {mode}"


@operator("Resize", host=(1, 2, 3), since=11, refuses=_no_mode)
def resize(call: Call, x: Any, roi: Any = None, scales: Any = None, sizes: Any = None) -> Any:
    """Return an image of other extents: each axis is resized by itself."""
    axes = [axis_from_0(n, x.ndim) for n in call.get("axes") or range(x.ndim)]
    mode, made, outside = call.get("mode", "nearest"), x, []
    wide = x if mode == "nearest" or dtype_of(x) == "float64" else cast(x, "float32")
    made = wide
    for k, (at, scale, count) in enumerate(_targets(call, x, axes, scales, sizes)):
        extent = x.shape[at]
        window = (0.0, 1.0) if roi is None or not roi.size else (roi[k], roi[k + len(axes)])
        places = _coordinates(call, extent, count, scale, window)
        name = call.get("coordinate_transformation_mode", "half_pixel")
        if name == "tf_crop_and_resize":
            outside.append((at, (places < 0) | (places > extent - 1)))
        elif count == extent and np.array_equal(places, np.arange(extent)):
            continue
        if mode == "nearest":
            made = array.take(made, _rounded(call, places, extent), at)
        else:
            weights = _weights(call, places, extent, scale).astype(dtype_of(made))
            line = array.tensordot(call.ref(weights), made, axes=([1], [at]))
            made = array.moveaxis(line, 0, at)
    for at, mask in outside:
        if mask.any():
            shape = [-1 if k == at else 1 for k in range(x.ndim)]
            number = call.get("extrapolation_value", 0.0)
            made = array.where(call.ref(mask.reshape(shape)), number, made)
    return like(x, made)


@operator("Upsample", host=(1,), since=9)
def upsample(call: Call, x: Any, scales: Any) -> Any:
    """Return a larger image, by the nearest element or on lines between them."""
    made = x
    for at, scale in enumerate(scales):
        count = math.floor(x.shape[at] * float(scale))
        places = np.arange(count) / float(scale)
        if call.get("mode", "nearest") == "nearest":
            made = array.take(made, np.floor(places).astype(int), at)
        else:
            weights = _taps(places, x.shape[at], 1.0, 1, _triangle).astype(dtype_of(x))
            line = array.tensordot(call.ref(weights), made, axes=([1], [at]))
            made = array.moveaxis(line, 0, at)
    return made


def _targets(
    call: Call, x: Any, axes: list[int], scales: Any, sizes: Any
) -> list[tuple[int, float, int]]:
    """Return for each axis its factor and its new extent."""
    extents = [x.shape[at] for at in axes]
    if sizes is None or not sizes.size:
        factors = [float(one) for one in scales]
        counts = [math.floor(n * f) for n, f in zip(extents, factors, strict=True)]
        return list(zip(axes, factors, counts, strict=True))
    counts = [int(one) for one in sizes]
    factors = [k / n for k, n in zip(counts, extents, strict=True)]
    policy = call.get("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        factor = min(factors) if policy == "not_larger" else max(factors)
        factors = [factor] * len(axes)
        counts = [math.floor(n * factor + 0.5) for n in extents]
    return list(zip(axes, factors, counts, strict=True))


def _half_pixel(i: Line, scale: float, _n: int, _count: int, _roi: Any) -> Line:
    return (i + 0.5) / scale - 0.5


def _symmetric(i: Line, scale: float, n: int, count: int, _roi: Any) -> Line:
    return n / 2 * (1 - count / (scale * n)) + (i + 0.5) / scale - 0.5


def _cropped(i: Line, _scale: float, n: int, count: int, roi: Any) -> Line:
    start, end = map(float, roi)
    if count > 1:
        return start * (n - 1) + i * (end - start) * (n - 1) / (count - 1)
    return np.full_like(i, 0.5 * (start + end) * (n - 1))


_COORDINATES: dict[str, Any] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda i, s, n, k, r: _half_pixel(i, s, n, k, r) if k > 1 else i * 0,
    "align_corners": lambda i, _s, n, k, _r: i * (n - 1) / (k - 1) if k > 1 else i * 0,
    "asymmetric": lambda i, s, _n, _k, _r: i / s,
    "tf_half_pixel_for_nn": lambda i, s, _n, _k, _r: (i + 0.5) / s,
    "tf_crop_and_resize": _cropped,
}


def _coordinates(call: Call, extent: int, count: int, scale: float, roi: Any) -> Line:
    """Return where the elements of the result lie in what is resized."""
    mode = call.get("coordinate_transformation_mode", "half_pixel")
    places: Line = _COORDINATES[mode](np.arange(count, dtype=float), scale, extent, count, roi)
    return places


_ROUND: dict[str, Any] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _rounded(call: Call, places: Line, extent: int) -> Line:
    how = _ROUND[call.get("nearest_mode", "round_prefer_floor")]
    made: Line = np.clip(how(places), 0, extent - 1).astype(np.int64)
    return made


def _triangle(x: Line) -> Line:
    made: Line = np.maximum(0, 1 - np.abs(x))
    return made


def _cubic(a: float) -> Any:
    def kernel(x: Line) -> Line:
        d = np.abs(x)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))  # noqa: PLR2004 - its reach

    return kernel


def _weights(call: Call, places: Line, extent: int, scale: float) -> Line:
    """Return the matrix that resizes an axis: by how much each element counts."""
    is_cubic = call.get("mode") == "cubic"
    kernel = _cubic(call.get("cubic_coeff_a", -0.75)) if is_cubic else _triangle
    shrink = min(scale, 1.0) if call.get("antialias", 0) else 1.0
    reach = 2 if is_cubic else 1
    outside = bool(call.get("exclude_outside", 0))
    return _taps(places, extent, shrink, reach, kernel, leave_out=outside)


def _taps(
    places: Line, extent: int, shrink: float, reach: int, kernel: Any, *, leave_out: bool = False
) -> Line:
    """Return weights of a kernel; what is beyond the ends counts as these, or not at all."""
    made = np.zeros((len(places), extent))
    far = math.ceil(reach / shrink) + 1
    taps = np.floor(places).astype(int)[:, None] + np.arange(-far, far + 1)
    weights = kernel((taps - places[:, None]) * shrink)
    if leave_out:
        weights = np.where((taps >= 0) & (taps < extent), weights, 0)
    weights = weights / weights.sum(1, keepdims=True)
    np.add.at(made, (np.arange(len(places))[:, None], np.clip(taps, 0, extent - 1)), weights)
    return made


def picked(call: Call, table: Any, at: list[Any], extents: tuple[int, ...], outside: Any) -> Any:
    """Return the rows (n, points, channels) of a table at whole places; outside there are zeros.

    Parameters:
        outside: how places outside are led inside; None for zeros.
    """
    place, inside = None, None
    for one, extent in zip(at, extents, strict=True):
        if outside is None:
            here = array.logical_and(one >= 0, one <= extent - 1)
            inside = here if inside is None else array.logical_and(inside, here)
            whole = array.clip(one, 0, extent - 1)
        else:
            whole = array.clip(outside(one, extent), 0, extent - 1)
        index = cast(whole, "int64")
        place = index if place is None else place * extent + index
    assert place is not None
    rows = call.ref(np.arange(place.shape[0]).reshape(-1, 1) * math.prod(extents))
    made = array.take(table, place + rows, 0)
    return made if inside is None else made * cast(inside, dtype_of(made))[..., None]


def table_of(x: Any) -> Any:
    """Return images (n, channels, extents...) as rows of channels."""
    return x.transpose((0, *range(2, x.ndim), 1)).reshape((-1, x.shape[1]))


def sampled(call: Call, x: Any, y: Any, z: Any, n: int) -> Any:
    """Return images (n, channels, h, w) on lines between elements, with zeros around them.

    The result is (n, channels, points).
    """
    table, extents = table_of(x), x.shape[2:]
    places = [one.reshape((n, -1)) for one in (y, z)]
    return _between(call, table, places, extents, None).transpose((0, 2, 1))


def _between(call: Call, table: Any, places: list[Any], extents: Any, outside: Any) -> Any:
    low = [array.floor(one) for one in places]
    part = [one - whole for one, whole in zip(places, low, strict=True)]
    total: Any = 0.0
    for corner in product((0, 1), repeat=len(places)):
        at = [whole + c for whole, c in zip(low, corner, strict=True)]
        weight: Any = 1.0
        for c, one in zip(corner, part, strict=True):
            weight = (one if c else one * -1.0 + 1.0) * weight
        total = picked(call, table, at, extents, outside) * weight[..., None] + total
    return total


@operator("GridSample")
def grid_sample(call: Call, x: Any, grid: Any) -> Any:
    """Return an image at places of its own, each from -1 to 1."""
    mode, padding = call.get("mode", "linear"), call.get("padding_mode", "zeros")
    corners, extents, n = bool(call.get("align_corners", 0)), x.shape[2:], x.shape[0]
    wide = x if dtype_of(x) == "float64" else cast(x, "float32")
    table, ndim = table_of(wide), len(extents)
    places = []
    for k, extent in enumerate(extents):
        line = cast(grid[..., ndim - 1 - k], dtype_of(wide)).reshape((n, -1))
        line = (line + 1) * ((extent - 1) / 2) if corners else ((line + 1) * extent - 1) * 0.5
        places.append(line if padding == "zeros" else _led_inside(padding, corners, line, extent))
    outside = None
    if padding != "zeros":
        outside = lambda one, extent: _led_inside(padding, corners, one, extent)  # noqa: E731
    if mode == "nearest":
        made = picked(call, table, [array.rint(p) for p in places], extents, outside)
    elif mode in ("linear", "bilinear"):
        made = _between(call, table, places, extents, outside)
    else:
        made = _cubic_between(call, table, places, extents, outside)
    return like(x, made.transpose((0, 2, 1)).reshape((n, x.shape[1], *grid.shape[1:-1])))


def _led_inside(padding: str, corners: bool, one: Any, extent: int) -> Any:  # noqa: FBT001
    """Return places led inside: to the border, or as a mirror there would."""
    if padding == "border":
        return array.clip(one, 0.0, extent - 1.0)
    low, high = (0.0, extent - 1.0) if corners else (-0.5, extent - 0.5)
    span = high - low
    if not span:
        return one * 0.0
    turned = array.remainder(one - low, 2 * span)
    return array.where(turned > span, turned * -1.0 + 2 * span, turned) + low


def _cubic_between(call: Call, table: Any, places: list[Any], extents: Any, outside: Any) -> Any:
    a, low = -0.75, [array.floor(one) for one in places]
    weights = []
    for one, whole in zip(places, low, strict=True):
        t, each = one - whole, []
        for k in range(-1, 3):
            d = abs(t - float(k))
            near = ((d * (a + 2)) - (a + 3)) * d * d + 1.0
            far = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a
            each.append(array.where(d <= 1.0, near, far))
        weights.append(each)
    total: Any = 0.0
    for tap in product(range(4), repeat=len(places)):
        at = [whole + (k - 1.0) for whole, k in zip(low, tap, strict=True)]
        weight: Any = 1.0
        for k, each in zip(tap, weights, strict=True):
            weight = each[k] * weight
        total = picked(call, table, at, extents, outside) * weight[..., None] + total
    return total


def _only_average(node: Node) -> str | None:
    return None if node.get("mode", "avg") == "avg" else f"mode {node.get('mode')!r}"


@operator("RoiAlign", host=(1, 2), refuses=_only_average)
def roi_align(call: Call, x: Any, regions: Any, images: Any) -> Any:
    """Return the average of points of each part of each region."""
    counts = call.get("output_height", 1), call.get("output_width", 1)
    by, scale = call.get("sampling_ratio", 0), call.get("spatial_scale", 1.0)
    is_half = call.version >= 16 and (  # noqa: PLR2004 - the operator set
        call.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    )
    made = []
    for region, image in zip(regions.astype(float), images, strict=True):
        first = region[[1, 0]] * scale - (0.5 if is_half else 0)
        last = region[[3, 2]] * scale - (0.5 if is_half else 0)
        span = last - first if is_half else np.maximum(last - first, 1.0)
        rows, columns = (
            _averages(first[k], span[k], counts[k], by, x.shape[2 + k]).astype(dtype_of(x))
            for k in (0, 1)
        )
        part = array.matmul(call.ref(rows), x[int(image)])
        made.append(array.matmul(part, call.ref(np.ascontiguousarray(columns.T))))
    return array.stack(made)


def _averages(first: float, span: float, count: int, by: int, extent: int) -> Line:
    """Return the matrix that averages points along one axis of a region."""
    each = by or math.ceil(span / count)
    places = first + (np.arange(count * each) + 0.5) * (span / count / each)
    inside = (places >= -1) & (places <= extent)
    weights = _taps(np.clip(places, 0, extent - 1), extent, 1.0, 1, _triangle)
    made: Line = (weights * inside[:, None]).reshape(count, each, extent).mean(1)
    return made
