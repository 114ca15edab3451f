"""How far a replayed result may be from the recorded one, by operation and dtype.

Both are results of one formula on equal operands, each rounded in its own order. The distance is
taken over all elements together: the Euclidean norm of the difference, relative to that of the
recorded result, in units of the dtype's epsilon (the distance from 1 to the next number).

| operation | units |
|---|---|
| integers, booleans; uploads, fills, copies, casts, views, `Take`, `Where` | 0 |
| `Concatenate`, `Arange`, `Eye`, `Sort`, `Unique` and what else of `array` copies elements | 0 |
| `Words`, `Integers`, `Uniform` | 0: one Philox, bit for bit |
| `Normal` | 8: logarithm and cosine are each machine's own |
| `Axpy`, `Scal`, also by a buffer | 2: with and without a fused multiply-add |
| `Gem…`, `Matmul`, `Dot`, `Nrm2`, `Reduce`, `Scan`, `Bincount` of k terms | 8 + 4 sqrt(k) |
| `C2C`, `R2C`, `C2R`, `R2R`, `Padded` of n points | 16 (1 + log2 n) |
| `Hilbert`, `Convolve`, of two and three transforms | as many times that |
| `Half`, whose every stage may be rounded to 16 bits | 16 (1 + log2 n) |
| `Embedded`, `Interleaved`, `Shift` | 0 |
| anything else: `Unary`, `Binary`, a function, a library of your own | 64 |

The error of a sum of k terms grows like sqrt(k) when roundings are independent, and that of a fast
transform like log2 n (Higham, Accuracy and Stability of Numerical Algorithms, sections 2.8, 24.1).
Complex numbers have four times as many units, but for transforms. A dtype below float32 is
computed in float32 and rounded once, which is one unit; the units above are float32's, but those
of `Half`. Where `compute` is "tf32", operands are rounded to eleven bits, and so large is the unit.
"""

import math
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from accel_lab.compute.arrays.dtypes import is_complex, numpy_dtype, real_of
from accel_lab.compute.message.operation import Operation

OTHERWISE = 64.0
PASSED_ON = 4.0
"""By what factor an operation may pass on the error of its operands."""

_COPIES = ("Put", "Upload", "Zeros", "Full", "Copy", "Cast", "Slice", "Reshape", "Transpose")
_JOINED = ("Concatenate", "Broadcast", "Triangle", "Diagonal", "Arange", "Eye")
_CHOICES = ("Take", "TakeAlong", "Where", "Mask", "Sort", "Unique")
_LAYOUTS = ("Embedded", "Interleaved", "Shift")
_EXACT = frozenset((*_COPIES, *_JOINED, *_CHOICES, *_LAYOUTS, "Words", "Integers", "Uniform"))
_FIXED = {"Normal": 8.0, "Axpy": 2.0, "Scal": 2.0, "AxpyBy": 2.0, "ScalBy": 2.0}
_PRODUCTS = {"Gemm", "GemmStridedBatched", "GemmBy", "GemmStridedBatchedBy", "Matmul"}
_VECTOR_PRODUCTS = {"Gemv", "GemvBy"}
_TRANSFORMS = dict.fromkeys(("C2C", "R2C", "C2R", "R2R", "Padded", "Half"), 1)
_TRANSFORMS |= {"Hilbert": 2, "Convolve": 3}  # how many one after the other
_SINGLE = 4
_TF32 = 2.0**-10
_finfo: Any = ml_dtypes.finfo


def eps_of(dtype: str) -> float:
    """Return the distance from 1 to the next number; 0 for a dtype of exact numbers."""
    native = numpy_dtype(real_of(dtype))
    return 0.0 if native.kind in "biu" else float(_finfo(native).eps)


def tolerance(message: Operation[Any], dtype: str) -> float:
    """Return the relative distance that results of this message may have; 0 for none."""
    name = type(message).__name__
    eps = eps_of(dtype)
    if eps and getattr(message, "compute", "") == "tf32":
        eps = max(eps, _TF32)
    if not eps or name in _EXACT:
        return 0.0
    if name in _TRANSFORMS:
        units = 16 * _TRANSFORMS[name] * (1 + math.log2(_points(message)))
    else:
        units = _units(message, name) * (4 if is_complex(dtype) else 1)
    if numpy_dtype(real_of(dtype)).itemsize < _SINGLE and name != "Half":
        return eps + units * eps_of("float32")
    return units * eps


def _units(message: Any, name: str) -> float:
    if name in _FIXED:
        return _FIXED[name]
    if name in _PRODUCTS or name in _VECTOR_PRODUCTS:
        trans = message.trans if name in _VECTOR_PRODUCTS else getattr(message, "trans_a", "n")
        return 8 + 4 * math.sqrt(message.a.shape[-1 if trans == "n" else -2])
    if name == "Reduce" and message.library == "tensor":
        kept = math.prod(message.makes().shape)  # its axes have names
        return 8 + 4 * math.sqrt(message.x.size / max(kept, 1))
    if name == "Reduce":
        return 8 + 4 * math.sqrt(math.prod(message.x.shape[axis] for axis in message.axes()))
    if name in {"Dot", "Nrm2", "Scan", "Bincount"}:
        axis, x = getattr(message, "axis", None), message.x
        return 8 + 4 * math.sqrt(x.size if axis is None else x.shape[axis])
    return OTHERWISE


def _points(message: Any) -> int:
    """Return how many points a transform has, at most: C2R has two for each but the first."""
    if not hasattr(message, "s"):  # a batch counts as points: what it adds is a logarithm
        sizes: list[int] = [ref.size for ref in message.operands()]
        return max(2 * sum(sizes), 1)
    shape = message.x.shape
    axes = range(len(shape)) if message.axes is None else message.axes
    lengths: list[int] = message.s or [shape[axis] for axis in axes]
    return max(2 * math.prod(lengths), 1)


def distance(recorded: npt.NDArray[Any], replayed: npt.NDArray[Any]) -> float:
    """Return the norm of the difference relative to the norm of what was recorded.

    Equal infinities, and NaN with NaN, are no difference; any other of them makes it infinite.
    """
    a, b = _wide(recorded), _wide(replayed)
    exact = recorded.dtype.kind in "iu"
    with np.errstate(all="ignore"):
        same = recorded == replayed if exact else (a == b) | (np.isnan(a) & np.isnan(b))
        finite = np.isfinite(a) & np.isfinite(b)
        if not np.all(same | finite):
            return math.inf
        # Scaled, so that no square overflows.
        scale = max(float(np.max(np.abs(x), initial=0, where=finite)) for x in (a, b)) or 1.0
        apart = _apart(recorded, replayed) / scale if exact else a / scale - b / scale
        off = float(np.linalg.norm(np.where(same, 0, apart).ravel()))
        size = float(np.linalg.norm(np.where(finite, a / scale, 0).ravel()))
    if not off:
        return 0.0
    return off / size if size else math.inf


def _apart(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return how far integers are apart, of which a float64 may not have every one."""
    apart: npt.NDArray[Any] = np.maximum(a, b) - np.minimum(a, b)
    return apart.view(f"u{a.dtype.itemsize}")


def _wide(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
