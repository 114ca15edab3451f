"""Products of matrices, and Fourier transforms."""

from typing import Any

import numpy as np

from accel_lab import array_api
from accel_lab.libraries.array import library as array
from accel_lab.onnx.node import Call
from accel_lab.onnx.registry import operator
from accel_lab.onnx.values import cast, dtype_of, like


@operator("MatMul", anywhere=True)
def matmul(call: Call, a: Any, b: Any) -> Any:
    """Return a @ b."""
    return call.xp.matmul(a, b)


@operator("Gemm")
def gemm(call: Call, a: Any, b: Any, c: Any = None) -> Any:
    """Return alpha a @ b + beta c, of matrices that may be transposed."""
    left = a.transpose((1, 0)) if call.get("transA", 0) else a
    right = b.transpose((1, 0)) if call.get("transB", 0) else b
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    made = array.matmul(left, right)
    made = made if alpha == 1 else like(a, made * alpha)
    if c is None or beta == 0:
        return made
    return made + (c if beta == 1 else like(a, c * beta))


@operator("Einsum")
def einsum(call: Call, *xs: Any) -> Any:
    """Return sums of products, as subscripts say."""
    return array.einsum(call.get("equation").replace(" ", ""), *xs)


@operator("Det")
def determinant(call: Call, x: Any) -> Any:
    """Return the determinants of matrices."""
    return array_api.linalg.det(x)


@operator("DFT", host=(1, 2))
def dft(call: Call, x: Any, length: Any = None, axis: Any = None) -> Any:
    """Return the Fourier transform along an axis, of real or complex numbers in a last axis."""
    at = call.get("axis", 1) if axis is None else int(axis.reshape(()))
    at = at + x.ndim if at < 0 else at
    points = None if length is None else int(length.reshape(()))
    wave, is_real = complex_of(x), x.shape[-1] == 1
    if call.get("inverse", 0):
        if call.get("onesided", 0):
            n = points or 2 * (wave.shape[at] - 1)
            return array_api.fft.irfft(wave, n=n, axis=at)[..., None]
        return parts_of(array_api.fft.ifft(wave, n=points, axis=at), x)
    if call.get("onesided", 0) and is_real:
        return parts_of(array_api.fft.rfft(x[..., 0], n=points, axis=at), x)
    return parts_of(array_api.fft.fft(wave, n=points, axis=at), x)


def complex_of(x: Any) -> Any:
    """Return complex numbers of their parts in a last axis; one part is the real one."""
    wide = x if dtype_of(x) == "float64" else cast(x, "float32")
    real = cast(wide[..., 0], "complex128" if dtype_of(wide) == "float64" else "complex64")
    return real if x.shape[-1] == 1 else real + wide[..., 1] * 1j


def parts_of(wave: Any, x: Any) -> Any:
    """Return the parts of complex numbers in a last axis, in the dtype of `x`."""
    return like(x, array.stack([array.real(wave), array.imag(wave)], -1))


@operator("STFT", host=(1, 3))
def stft(call: Call, x: Any, step: Any, window: Any = None, length: Any = None) -> Any:
    """Return the Fourier transforms of frames."""
    hop = int(step.reshape(()))
    size = window.shape[0] if length is None else int(length.reshape(()))
    signal = x if x.ndim == 3 else x[..., None]  # noqa: PLR2004 - a last axis of parts
    count = (signal.shape[1] - size) // hop + 1
    places = np.arange(count)[:, None] * hop + np.arange(size)
    frames = array.take(signal, places, 1)  # batch, frames, size, parts
    if window is not None:
        frames = frames * window.reshape((1, 1, size, 1))
    if call.get("onesided", 1) and frames.shape[-1] == 1:
        return parts_of(array_api.fft.rfft(frames[..., 0], axis=2), x)
    return parts_of(array_api.fft.fft(complex_of(frames), axis=2), x)
