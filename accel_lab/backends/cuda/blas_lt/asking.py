"""From arrays to a call: operands that cuBLASLt can address, and where they are."""

from typing import Any, NamedTuple

import cupy

from accel_lab.backends.cuda.blas_lt.call import Call, N, T, aligned, of_columns, stacked
from accel_lab.backends.cuda.blas_lt.operands import placed, target
from accel_lab.backends.cuda.blas_lt.plan import Addresses
from accel_lab.libraries.authoring.operand import Number
from accel_lab.libraries.blas_lt.epilogue import mask_bytes
from accel_lab.libraries.blas_lt.evaluation import FusedOperands, Parts
from accel_lab.libraries.blas_lt.fused import FLOAT8, Fused, companion

_AUX_MULTIPLE = 8  # of the leading dimension of what is kept of GELU
_BITS = 8


class Ask(NamedTuple):
    """A product as a message has it: arrays of the device, and what is to be done.

    Attributes:
        dtypes: of `a`, `b`, `c` and `d`.
        turned: whether op transposes `a`, and `b`.
        bias: it, or where its gradient is written, contiguous.
        aux: what is kept or was, contiguous.
        aux_leading: elements from one row of it to the next.
        amax: where the largest magnitude is written.
        compute: as of a call.
    """

    epilogue: str
    dtypes: tuple[str, str, str, str]
    turned: tuple[bool, bool]
    a: Any
    b: Any
    c: Any
    d: Any
    factors: tuple[Number, Number]
    bias: Any = None
    bias_dtype: str = ""
    aux: Any = None
    aux_leading: int = 0
    scale_a: Any = None
    scale_b: Any = None
    scale_d: Any = None
    amax: Any = None
    compute: str = ""


class Asked(NamedTuple):
    """A call, where it reads and writes, and what has to live until it is enqueued.

    Attributes:
        target: where it writes, `d` itself or an array of its shape.
    """

    call: Call
    at: Addresses
    target: Any
    held: tuple[Any, ...]


def asked(ask: Ask) -> Asked:
    """Return the call of a product, of operands that are copied where they have to be."""
    narrow = ask.a.itemsize == 1  # these products are made of columns of both alone
    turned_a, turned_b = ask.turned
    b, of_b = placed(ask.b, turned=turned_b, operation=T if narrow else None)
    a, of_a = placed(ask.a, turned=turned_a, operation=N if narrow else None)
    d, of_d = target(ask.d)
    c, of_c = d, of_d
    if ask.c is not None and not (ask.c is ask.d and d is ask.d):
        c, of_c = placed(ask.c, turned=False, operation=N)
    scale_a, scale_b, vectors = _scales(ask)
    given = {"b": scale_b, "a": scale_a, "d": ask.scale_d, "m": ask.amax}
    arrays = {"bias": ask.bias, "aux": ask.aux, "amax": ask.amax}
    arrays |= {"scale_a": scale_a, "scale_b": scale_b, "scale_d": ask.scale_d}
    at = Addresses(
        b.data.ptr,
        a.data.ptr,
        # Of another dtype than `d` it may not be there.
        0 if ask.c is None and ask.dtypes[2] != ask.dtypes[3] else c.data.ptr,
        d.data.ptr,
        **{name: 0 if one is None else one.data.ptr for name, one in arrays.items()},
    )
    dtype_a, dtype_b, dtype_c, dtype_d = ask.dtypes
    call = Call(
        epilogue=of_columns(ask.epilogue),
        dtypes=(dtype_b, dtype_a, dtype_c, dtype_d),
        operations=(of_b.operation(turned=turned_b), of_a.operation(turned=turned_a)),
        b=of_b,
        a=of_a,
        c=of_c,
        d=of_d,
        batch=stacked(ask.d.shape),
        bias_dtype="" if ask.bias is None else ask.bias_dtype,
        bias_step=ask.bias.shape[-1] if ask.bias is not None and ask.bias.ndim > 1 else 0,
        aux_leading=ask.aux_leading,
        vectors=vectors,
        marks="".join(mark for mark, one in given.items() if one is not None),
        aligned=(aligned(at.b), aligned(at.a), aligned(at.c), aligned(at.d)),
        compute=ask.compute,
    )
    return Asked(call, at, d, (b, a, c, scale_a, scale_b))


def _scales(ask: Ask) -> tuple[Any, Any, bool]:
    """Return both scales, as vectors where one of them is."""
    one, other = ask.scale_a, ask.scale_b
    if not any(scale is not None and scale.ndim for scale in (one, other)):
        return one, other, False
    rows, columns = ask.d.shape
    return _vector(one, rows), _vector(other, columns), True


def _vector(scale: Any, extent: int) -> Any:
    if scale is None:
        return cupy.ones(extent, cupy.float32)
    return cupy.ascontiguousarray(cupy.broadcast_to(scale, (extent,)))


def ask_of(m: Fused[Any], x: FusedOperands, out: Parts, factors: tuple[Number, Number]) -> Ask:
    """Return what is to be asked for a message; what it keeps of GELU may have wider rows."""
    made = m.made_dtype
    beside = companion(made)
    aux, leading = out.aux if m.keep_aux else x.aux, 0
    if aux is not None:
        aux, leading = _aux(m, aux)
    bias = out.bias_gradient if m.bias_gradient else x.bias
    return Ask(
        m.epilogue,
        (m.a.dtype, m.b.dtype, beside, made),
        (m.trans_a != "n", m.trans_b != "n"),
        x.a,
        x.b,
        x.c,
        out.d,
        factors,
        bias=None if bias is None else cupy.ascontiguousarray(bias),
        bias_dtype=beside,
        aux=aux,
        aux_leading=leading,
        scale_a=x.scale_a,
        scale_b=x.scale_b,
        scale_d=x.scale_d,
        amax=out.amax if made in FLOAT8 else None,
        compute=m.compute,
    )


def _aux(m: Fused[Any], aux: Any) -> tuple[Any, int]:
    """Return an array that cuBLASLt takes as aux, this one or a wider copy, and how wide it is."""
    rows, columns, _ = m.extents
    if m.activation == "relu":
        return cupy.ascontiguousarray(aux), mask_bytes(columns) * _BITS
    width = -(-columns // _AUX_MULTIPLE) * _AUX_MULTIPLE
    if width == columns:
        return cupy.ascontiguousarray(aux), columns
    wider = cupy.zeros((rows, width), aux.dtype)
    if not m.keep_aux:
        wider[:, :columns] = aux
    return wider, width
