"""What a compiler of kernels is given, and what is refused before it runs."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from accel_lab.errors import CompileError, InvalidArgument

_NAME = re.compile(r"(?:[A-Za-z_]\w*::)*(?P<base>[A-Za-z_]\w*)\s*(?:<.*>)?")
_MISSING = "cannot open source file"
"""What NVRTC says of an include that is nowhere."""
_HEADER = re.compile(r"\w[\w.+-]*(?:/\w[\w.+-]*)*")
_OPTIONS = re.compile(
    r"--?std=c\+\+(?:17|20)|-[DU][A-Za-z_]\w*(?:=.*)?|--?use_fast_math|--?fmad=(?:true|false)"
    r"|--?maxrregcount=\d+|-lineinfo|--generate-line-info|-w",
    re.DOTALL,
)


class Program(Protocol):
    """CUDA C++ with the kernels that are wanted of it."""

    @property
    def name(self) -> str:
        """What people call it: its kernel's name."""

    @property
    def names(self) -> tuple[str, ...]:
        """The kernels, template arguments included."""

    @property
    def base(self) -> str:
        """The first kernel's name without namespaces and template arguments."""

    @property
    def file(self) -> str:
        """What the source is called in the compiler's messages."""

    @property
    def source(self) -> str:
        """The source as it was given."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Texts by the names that `#include` has for them."""

    @property
    def text(self) -> str:
        """The source as compilers take it."""

    @property
    def included(self) -> dict[str, str]:
        """The headers, likewise."""

    @property
    def options(self) -> tuple[str, ...]:
        """The user's options."""


def require_source(
    kind: str, source: str, headers: Mapping[str, str], options: Iterable[str]
) -> None:
    """Refuse a source, headers or options that no compiler takes.

    Parameters:
        kind: the message that has them.

    Raises:
        InvalidArgument: with what is wrong.
    """
    for text in (*headers.values(), *headers, *options):
        if not isinstance(text, str):
            raise InvalidArgument(f"{kind} takes options and headers as str, not {text!r}")
    if any("\0" in text for text in (source, *headers.values())):
        raise InvalidArgument(f"{kind}: a source or header ends at its first NUL character")
    for header in headers:
        if _HEADER.fullmatch(header) is None:
            raise InvalidArgument(
                f'{kind}: a header is named as #include names it, "my/part.h", not {header!r}'
            )
    for option in options:
        if _OPTIONS.fullmatch(option) is None:
            raise InvalidArgument(_unknown_option(kind, option))


def require_names(kind: str, names: Iterable[str], texts: Iterable[str]) -> None:
    """Refuse what is no kernel's name, or nowhere in the texts.

    Raises:
        InvalidArgument: with the name.
    """
    texts = tuple(texts)
    for name in names:
        found = _NAME.fullmatch(name.strip())
        if found is None:
            raise InvalidArgument(
                f'{kind}: name is a kernel\'s, as "scale" or "scale<float, 4>", not {name!r}'
            )
        if not any(re.search(rf"\b{found['base']}\b", text) for text in texts):
            raise InvalidArgument(f"{kind}: nothing in the source is called {found['base']}")


def base_of(name: str) -> str:
    """Return a kernel's name without namespaces and template arguments."""
    found = _NAME.fullmatch(name.strip())
    assert found is not None
    return found["base"]


def as_compiled(text: str) -> str:
    """Return a source without what some editors add: a byte order mark, CR, Ctrl-Z at its end.

    What stands before it in a compiler's file would make an error of a mark, and a backslash
    before CR joins no lines for every compiler. The lines keep their numbers.
    """
    plain = text.removeprefix("\ufeff").removesuffix("\x1a")
    return plain.replace("\r\n", "\n").replace("\r", "\n")


def compile_error(program: Program, log: str, why: str = "") -> CompileError:
    """Return what a failed compilation raises; `why` replaces the first line of its text."""
    text = f"{why or f'{program.name} does not compile'}:\n{log}"
    is_elsewhere = _MISSING in log or re.search(rf"{re.escape(program.file)}[(:]\d", log)
    if not is_elsewhere:
        text += (
            f"\nNo line of {program.file} is wrong by itself: look for a missing brace at its end, "
            f"and whether {program.base} is one __global__ function, returns void, and is given "
            "all its template arguments."
        )
    return CompileError(text, log=log, name=program.name)


def _unknown_option(kind: str, option: Any) -> str:
    text = (
        f"{kind}: option {option!r} is not one of -std=c++17, -std=c++20, -Dname=value, -Uname, "
        "--use_fast_math, --fmad=true, --fmad=false, --maxrregcount=n, -lineinfo and -w"
    )
    if str(option).startswith(("-I", "--include-path", "-include")):
        return f"{text}; give the text of a header in headers={{name: text}}"
    return text
