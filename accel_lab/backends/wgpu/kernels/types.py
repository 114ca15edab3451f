"""The dtypes in WGSL: how an element is stored, in what it is computed, and the way between.

WGSL stores in words of 32 bits and more. So an element of fewer bits has a word of its own: of
integers and bool with the value, of narrow floats with the bits. These are computed in float32 and
rounded at each step, as NumPy does.
"""

from typing import Any, NamedTuple

import numpy as np

from accel_lab.backends.wgpu.kernels.lacking import lacks
from accel_lab.compute.arrays.dtypes import numpy_dtype


class Type(NamedTuple):
    """A dtype in WGSL.

    Attributes:
        stored: the type of an element in a buffer.
        value: the type that it is computed in.
        load, save: templates of `{0}`, from one to the other.
        rounded: a template that rounds what was computed to the dtype.
        kind: NumPy's letter: b, i, u or f.
        words: how many words an element takes.
    """

    stored: str
    value: str
    load: str = "{0}"
    save: str = "{0}"
    rounded: str = "{0}"
    kind: str = "f"
    words: int = 1


TYPES: dict[str, Type] = {
    "bool": Type("u32", "bool", "({0} != 0u)", "select(0u, 1u, {0})", "{0}", "b"),
    "int8": Type("i32", "i32", rounded="(({0} << 24u) >> 24u)", kind="i"),
    "int16": Type("i32", "i32", rounded="(({0} << 16u) >> 16u)", kind="i"),
    "int32": Type("i32", "i32", kind="i"),
    "int64": Type("i64", "i64", kind="i", words=2),
    "uint8": Type("u32", "u32", rounded="({0} & 0xffu)", kind="u"),
    "uint16": Type("u32", "u32", rounded="({0} & 0xffffu)", kind="u"),
    "uint32": Type("u32", "u32", kind="u"),
    "uint64": Type("u64", "u64", kind="u", words=2),
    "float16": Type("u32", "f32", "of_half({0})", "to_half({0})", "of_half(to_half({0}))"),
    "bfloat16": Type("u32", "f32", "of_brain({0})", "to_brain({0})", "of_brain(to_brain({0}))"),
    "float32": Type("f32", "f32"),
    "float64": Type("f64", "f64", words=2),
}
"""What can be computed with; the others are only moved."""


_RAW = {1: "u32", 2: "vec2<u32>", 4: "vec4<u32>"}
_HOST: dict[str, tuple[Any, Any]] = {
    "bool": (np.uint8, np.uint32),
    "uint8": (np.uint8, np.uint32),
    "int8": (np.int8, np.int32),
    "int16": (np.int16, np.int32),
    **dict.fromkeys(("uint16", "float16", "bfloat16"), (np.uint16, np.uint32)),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2"), (np.uint8, np.uint32)),
}


def words_of(dtype: str) -> int:
    """Return how many words of 32 bits an element takes on the device."""
    return max(1, numpy_dtype(dtype).itemsize // 4)


def raw_of(dtype: str) -> Type:
    """Return the type in which elements are moved."""
    words = words_of(dtype)
    return Type(_RAW[words], _RAW[words], words=words)


def type_of(dtype: str, for_what: str = "") -> Type:
    """Return the type in which elements are computed with.

    Raises:
        UnsupportedDtype: there is none.
    """
    found = TYPES.get(dtype)
    if found is None:
        text = f"wgpu computes nothing{for_what} in {dtype}; it has {', '.join(TYPES)}"
        raise lacks(text)
    return found


def to_device(data: Any, dtype: str) -> Any:
    """Return bytes of the host as they lie on the device."""
    if dtype not in _HOST:
        return data
    held, stored = _HOST[dtype]
    return data.view(held).astype(stored).view(np.uint8)


def to_host(data: Any, dtype: str) -> Any:
    """Return bytes of the device as they lie on the host."""
    if dtype not in _HOST:
        return data
    held, stored = _HOST[dtype]
    return data.view(stored).astype(held).view(np.uint8)


def number_words(number: Any, dtype: str) -> bytes:
    """Return a number among a job's words: that of the value's type, in two words."""
    kind = type_of(dtype)
    with np.errstate(all="ignore"):
        if kind.kind == "f":
            value = np.asarray(number, numpy_dtype(dtype))
            made = value.astype(np.float64 if kind.value == "f64" else np.float32)
        elif kind.kind == "b":
            made = np.asarray(bool(number), np.uint32)
        else:
            whole = int(number) % 2**64
            made = np.asarray(whole, np.uint64).astype(f"u{4 * kind.words}")
    return made.tobytes().ljust(8, b"\0")


def number_text(value: str, at: int) -> str:
    """Return a number of a job as WGSL reads it, of a value's type."""
    word, next_word = f"P[{at}u]", f"P[{at + 1}u]"
    wide = f"(u64({word}) | (u64({next_word}) << 32u))"
    return {
        "bool": f"({word} != 0u)",
        "i32": f"bitcast<i32>({word})",
        "u32": word,
        "f32": f"bitcast<f32>({word})",
        "i64": f"bitcast<i64>({wide})",
        "u64": wide,
        "f64": f"bitcast<f64>({wide})",
    }[value]


def cast(text: str, source: str, target: str) -> str:
    """Return a value of one dtype as one of another, rounded to nearest; floats to whole: cut off.

    As NumPy's astype; `bool` is whether it is not zero.
    """
    if source == target:
        return text
    old, new = type_of(source), type_of(target)
    if new.value == "bool":
        return f"!({text} == {old.value}(0))"  # a NaN is not zero
    if old.value == "bool":
        return f"select({new.value}(0), {new.value}(1), {text})"
    if old.kind == "f" and new.kind in "iu":
        wide = "i64" if "64" in old.value + new.value else "i32"
        whole = f"{wide}({text})"
        if new.value != wide:  # a negative float becomes what NumPy makes of it, modulo 2**bits
            signed = f"{new.value}({whole})"
            whole = f"select({signed}, {new.value}({text}), {text} > {old.value}(0))"
        return new.rounded.format(whole)
    if old.value == "f64" and target in ("float16", "bfloat16"):
        return new.rounded.format(f"to_odd({text})")  # else it would be rounded twice
    made = text if old.value == new.value else f"{new.value}({text})"
    return new.rounded.format(made)
