"""Whether a backend has an operation for a dtype, decided from its one table before sending.

A table maps `"blas.Gemm"` to the dtypes that the backend has it for. Operations of `compute`
itself move bytes, so every backend has them for every dtype and no table lists them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument, UnsupportedDtype

FIRST_LIBRARY_TAG = 100
_CONVERTIBLE = frozenset(NAMES)  # what names no buffer has nothing in place of a dtype
REMEDY = 'System(..., fallback="host") has the host compute it'
_names: dict[type[Operation[Any]], str] = {}


class Served(dict[str, frozenset[str]]):
    """A table of what a backend has or the host computes for it, with what is to be said beside.

    Attributes:
        helped: the table of what the host would compute, if the user said so.
        require_possible: refuses a message for more than its dtype, and is given what is known of
            the result.
    """

    def __init__(
        self,
        rows: Mapping[str, frozenset[str]],
        helped: Mapping[str, frozenset[str]],
        require_possible: Callable[[Operation[Any], Any], None] | None,
    ) -> None:
        super().__init__(rows)
        self.helped, self.require_possible = helped, require_possible


def check(
    support: Mapping[str, frozenset[str]],
    message: Operation[Any],
    *,
    backend: str = "this backend",
) -> None:
    """Refuse a message whose operation the backend lacks for its dtype; never sends or blocks.

    Raises:
        UnsupportedDtype: with the pairs that the backend has.
        InvalidArgument: the message has no tag.
    """
    kind = type(message)
    name = _names.get(kind)
    if name is None:
        if not isinstance(kind.__struct_config__.tag, int):
            raise InvalidArgument(
                f"{kind.__name__} has no tag, so it cannot travel; declare it as "
                f"class {kind.__name__}(..., tag=<a free number>)"
            )
        name = _names[kind] = name_of(kind)
    if name and message.dtype_key not in support.get(name, ()):
        raise _refusal(support, name, message, backend)


def name_of(kind: type[Operation[Any]]) -> str:
    """Return the operation's name in a table, as `blas.Gemm`; empty for one of `compute`."""
    tag = kind.__struct_config__.tag
    if not isinstance(tag, int) or tag < FIRST_LIBRARY_TAG:
        return ""
    return f"{kind.library}.{kind.__name__}"


def _refusal(
    support: Mapping[str, frozenset[str]], name: str, message: Operation[Any], backend: str
) -> UnsupportedDtype:
    remedy = ""
    if isinstance(support, Served) and message.dtype_key in support.helped.get(name, ()):
        remedy = f"; {REMEDY}"
    if message.lacking and not support.get(name):
        return UnsupportedDtype(f"{backend} has no {name}; {message.lacking}{remedy}")
    if name in support:
        has = f"it has {name} of {', '.join(sorted(support[name])) or 'no dtype'}"
        if message.operands() and support[name] | {message.dtype_key} <= _CONVERTIBLE:
            has += "; convert with array.cast"
    else:
        has = f"its operations are {', '.join(sorted(support))}"
    return UnsupportedDtype(f"{backend} has no {name} of {message.dtype_key}; {has}{remedy}")
