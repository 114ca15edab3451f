"""How a value looks in a notebook: as one line of text, and as what displays it."""

import io
import itertools
import weakref
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

TEXT_LIMIT = 200
DEPTH = 4
"""Of containers inside containers; what is deeper is asked for its repr as one."""
_BRACKETS: dict[type, str] = {list: "[]", tuple: "()", set: "{}", dict: "{}"}
Bundle = tuple[dict[str, Any], dict[str, Any]]
"""What is displayed: data by MIME type, and metadata."""
drawn: weakref.WeakKeyDictionary[Any, bytes] = weakref.WeakKeyDictionary()
"""What Matplotlib's figures looked like when they were shown last."""


def text(value: Any) -> str:
    """Return a value's repr on one line, cut."""
    try:
        line = " ".join(_repr(value).split())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the user's own repr, which may exit
        line = f"<its repr raised {type(error).__name__}>"
    return line if len(line) <= TEXT_LIMIT else f"{line[: TEXT_LIMIT - 1]}…"


def _repr(value: Any, depth: int = 0) -> str:
    """Return `repr(value)`, of a container only so far as is shown: a tensor's repr is costly."""
    brackets = _BRACKETS.get(type(value))
    if brackets is None or not value or depth == DEPTH:
        return repr(value)
    keys: Iterator[str] = itertools.repeat("")
    if isinstance(value, dict):
        keys, value = (f"{key!r}: " for key in value), value.values()
    parts: list[str] = []
    length = 0
    for key, part in zip(keys, value, strict=False):
        parts.append(key + _repr(part, depth + 1))
        length += len(parts[-1])
        if length > TEXT_LIMIT:
            break
    comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
    return f"{brackets[0]}{', '.join(parts)}{comma}{brackets[1]}"


def bundle(value: Any, include: Any = None, exclude: Any = None) -> Bundle:
    """Format a value as a notebook would; `include` and `exclude` are MIME types."""
    formatter = _formatter()
    if formatter is None:
        return {"text/plain": repr(value)}, {}
    data, metadata = formatter.format(value, include=include, exclude=exclude)
    return dict(data), dict(metadata)


@lru_cache(maxsize=1)
def _formatter() -> Any:
    """Return what formats values as a notebook would, None without IPython; made once, slowly."""
    try:
        from IPython.core.formatters import DisplayFormatter
    except ImportError:
        return None
    made = DisplayFormatter()
    made.formatters["image/png"].for_type_by_name("matplotlib.figure", "Figure", png)
    return made


def png(figure: Any) -> bytes:
    """Draw a figure of Matplotlib's."""
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    drawn[figure] = data = file.getvalue()
    return data
