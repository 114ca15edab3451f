"""The C++ of an element: its type, the one that is computed in, and the ways between them."""

from accel_lab.backends.cuda.device.narrow_floats import FORMATS, HALF
from accel_lab.backends.cuda.device.narrow_floats import SOURCE as ROUNDING

FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})

_SOURCE = """
typedef {element} Element;
typedef {wide} Wide;

__device__ Wide widened(Element x) {{ return {decode}; }}
__device__ Element rounded(Wide x) {{ return ({element}){encode}; }}
"""


def element_source(dtype: str) -> str:
    """Return the C++ of `Element`, `Wide`, `widened` and `rounded` for one of `FLOATS`."""
    narrow = HALF if dtype == "float16" else FORMATS.get(dtype)
    if narrow is None:
        name = "double" if dtype == "float64" else "float"
        return _SOURCE.format(element=name, wide=name, decode="x", encode="x")
    return ROUNDING + _SOURCE.format(
        element="unsigned short",
        wide="float",
        decode=narrow.decode("x"),
        encode=narrow.encode("x"),
    )
