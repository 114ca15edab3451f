"""What a product is finished with: activations, and what their backward pass needs.

Written once for both backends: `xp` is NumPy or CuPy. GELU is the tanh form, as cuBLASLt's.
"""

import math
from typing import Any, Literal, TypeAlias

Activation: TypeAlias = Literal["none", "relu", "gelu"]
Gradient: TypeAlias = Literal["", "a", "b", "d"]

MASK_BITS = 128
"""To a multiple of so many elements cuBLASLt pads a row of ReLU's mask."""
_BYTE = 8
_SCALE = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_FLAT = 50.0
"""From here on tanh is 1 in every dtype, and cubes and squares would only overflow."""


def epilogue_of(
    activation: Activation,
    *,
    bias: bool = False,
    keeps_aux: bool = False,
    backward: bool = False,
    gradient: Gradient = "",
) -> str:
    """Return what cuBLASLt calls it, as RELU_AUX_BIAS."""
    if gradient in ("a", "b"):
        return f"BGRAD{gradient.upper()}"
    name = "" if activation == "none" else activation.upper()
    if backward:
        return f"D{name}{'_BGRAD' * (gradient == 'd')}"
    parts = [name, "AUX" * keeps_aux, "BIAS" * bias]
    return "_".join(filter(None, parts)) or "DEFAULT"


def mask_bytes(columns: int) -> int:
    """Return the bytes of a row of ReLU's mask."""
    return -(-columns // MASK_BITS) * MASK_BITS // _BYTE


def activated(xp: Any, activation: Activation, x: Any) -> Any:
    """Return the activation of each element."""
    if activation == "relu":
        return xp.maximum(x, 0)
    if activation == "gelu":
        return 0.5 * xp.maximum(x, -_FLAT) * (1 + xp.tanh(_inner(xp, x)))
    return x


def aux_of(xp: Any, activation: Activation, x: Any) -> Any:
    """Return what the backward pass needs of the elements before activation.

    For ReLU it is a bit for each, whether it is above 0, the first one lowest in its byte (of 0
    itself cuBLASLt's may be 1); for GELU the elements themselves.
    """
    if activation == "gelu":
        return x
    rows, columns = x.shape
    bits = xp.zeros((rows, mask_bytes(columns), _BYTE), xp.uint8)
    bits.reshape(rows, mask_bytes(columns) * _BYTE)[:, :columns] = x > 0
    return (bits << xp.arange(_BYTE, dtype=xp.uint8)).sum(axis=-1, dtype=xp.uint8)


def slope(xp: Any, activation: Activation, aux: Any, columns: int) -> Any:
    """Return the derivative of the activation, of what `aux_of` returned."""
    if activation == "gelu":
        x = xp.clip(aux, -_FLAT, _FLAT)
        t = xp.tanh(_inner(xp, x))
        steep = _SCALE * (1 + 3 * _CUBIC * x * x)
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * steep
    bits = (aux[..., None] >> xp.arange(_BYTE, dtype=xp.uint8)) & 1
    return bits.reshape(len(aux), aux.shape[1] * _BYTE)[:, :columns]


def _inner(xp: Any, x: Any) -> Any:
    x = xp.clip(x, -_FLAT, _FLAT)
    return _SCALE * (x + _CUBIC * x * x * x)
