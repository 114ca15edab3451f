"""Write the table of features: `python -m docs.reference.make`, at the root."""

from collections.abc import Iterator
from pathlib import Path

from accel_lab.backends.cuda.support import SUPPORT as CUDA
from accel_lab.backends.host.support import SUPPORT as HOST
from accel_lab.backends.wgpu.support import SUPPORT as WGPU
from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.graph.refusals import why_refused
from accel_lab.compute.message.support import name_of
from accel_lab.libraries.authoring.registration import Kind, messages
from accel_lab.library_modules import LIBRARIES

PAGE = Path(__file__).with_name("features.md")
HEAD = """# Features

What each message of each library has: its dtypes on `host`, on `cuda` and on `wgpu`, whether
[a graph](../how-to/record-a-graph.md) can have it, and whether it is run again to
[rebuild a buffer](../how-to/after-a-fault.md). `python -m docs.reference.make` writes this page
from the code, and a test compares them. It says what the code takes. What ran on a card, and when,
is in the [benchmarks](../benchmarks.md).

A dtype is that of a message's first operand. "-" stands where no dtype decides, as for a message
about an object of its library, and "no" where `wgpu` lacks the message. An adapter of `wgpu` may
lack float64 and the integers of 64 bits. With
[`fallback="host"`](../how-to/use-a-gpu.md) the host computes what `wgpu` lacks.
"""
COLUMNS = """| Message | on `host` | on `cuda` | on `wgpu` | in a graph | run again |
|---|---|---|---|---|---|"""
GROUPS = {
    "all": NAMES,
    "float8": ("float8_e4m3fn", "float8_e5m2"),
    "complex": ("complex64", "complex128"),
    "ints": ("int8", "int16", "int32", "int64"),
    "uints": ("uint8", "uint16", "uint32", "uint64"),
    "float16 to float64": ("float16", "bfloat16", "float32", "float64"),
}
"""Words for several dtypes; the page says what they stand for."""


def page() -> str:
    """Return the page as the code has it now."""
    words = "; ".join(
        f"`{word}` is {', '.join(names)}" for word, names in GROUPS.items() if word != "all"
    )
    return "\n\n".join([f"{HEAD}\nIn the tables {words}.", *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    for library in LIBRARIES:
        kinds = sorted((one for one in messages() if one.library == library), key=_tag)
        yield "\n".join([f"## {library}\n", COLUMNS, *map(_row, kinds)])


def _tag(kind: Kind) -> int:
    """Return what a message travels by, which does not depend on what was imported first."""
    tag = kind.__struct_config__.tag
    assert isinstance(tag, int)
    return tag


def _row(kind: Kind) -> str:
    name = name_of(kind)
    host, cuda = _dtypes(HOST.get(name)), _dtypes(CUDA.get(name))
    wgpu = _dtypes(WGPU[name]) if WGPU.get(name) else "no"
    graph = f"no: {why}" if (why := why_refused(kind)) else "yes"
    again = f"no: {kind.opaque}" if kind.opaque else "yes"
    return f"| `{kind.__name__}` | {host} | {cuda} | {wgpu} | {graph} | {again} |"


def _dtypes(found: frozenset[str] | None) -> str:
    """Name dtypes, narrow to wide, with a word for those that stand together."""
    left, words = set(found or ()), list[str]()
    for word, names in GROUPS.items():
        if left >= set(names):
            words.append(word)
            left -= set(names)
    words += [name for name in NAMES if name in left]
    words += sorted(left - set(NAMES))
    return ", ".join(word for word in words if word) or "-"


if __name__ == "__main__":
    PAGE.write_text(page())
