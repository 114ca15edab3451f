"""A kernel's text as it stands in a file for nvcc, without the program around it.

Kept are the preprocessor's lines and, unchanged and in their order, the declarations that the
kernel needs, those that these need, and so on. Left out are the host's functions and its headers.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_WORD = re.compile(r"[A-Za-z_]\w*")
_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[{}();]|#(?:\\\n|[^\n])*",
    re.DOTALL,
)
_KEPT_HEADERS = re.compile(
    r"#\s*include\s*[<\"](?:cooperative_groups(?:/\w+)?\.h|cuda_fp16\.h|cuda_bf16\.h|float\.h"
    r"|math_constants\.h|type_traits|stdint\.h|cstdint|limits\.h)[>\"]"
)
_HOSTS_OWN = re.compile(
    r"\bcuda(?:Stream|Event|Error|DeviceProp|Malloc|Free|Memcpy)\w*|\bcublas\w*|<<<|\bstd::\w*stream"
)
_DEVICE = re.compile(r"__(?:global|device|constant|shared|managed)__")
_TYPE = re.compile(
    r"\s*(?:template\b.*?>\s*)?(?:struct|class|union|enum|typedef|using|namespace)\b", re.DOTALL
)
_ATTRIBUTES = re.compile(
    r"\b(?:__launch_bounds__|__align__|alignas|__attribute__)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)"
)
_DEFINE = re.compile(r"#\s*define\s+(\w+)")


class Piece(NamedTuple):
    """A declaration, or a line of the preprocessor.

    Attributes:
        names: what it may be known by.
    """

    text: str
    names: frozenset[str]
    uses: frozenset[str]
    always: bool


def cut(text: str, kernel: str) -> str:
    """Return the text that a compiler needs for one kernel, with its template arguments."""
    pieces = [_piece(one) for one in _split(text)]
    needed, ahead = set[int](), _WORD.findall(kernel)
    seen = set(ahead)
    while ahead:
        name = ahead.pop()
        for i, piece in enumerate(pieces):
            if i in needed or not (piece.always or name in piece.names):
                continue
            needed.add(i)
            ahead += piece.uses - seen
            seen |= piece.uses
    return "".join(pieces[i].text for i in sorted(needed))


def _split(text: str) -> Iterator[str]:
    """Yield the declarations at the file's own level, and what is between them."""
    depth = start = 0
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word[0] == "#":
            if depth == 0:
                yield text[start : token.start()]
                yield f"\n{word}\n"
                start = token.end()
        elif word in "{(":
            depth += 1
        elif word in "})":
            depth -= 1
            if word == "}" and depth == 0 and _ends(text, start, token.end()):
                yield text[start : token.end()]
                start = token.end()
        elif word == ";" and depth == 0:
            yield text[start : token.end()]
            start = token.end()
    yield text[start:]


def _ends(text: str, start: int, end: int) -> bool:
    """Whether a brace ends a function or a namespace, and no type or value."""
    head = _ATTRIBUTES.sub("", _bare(text[start:end]))
    before = head.partition("{")[0]
    after = text[end:].lstrip()[:1]
    return after != ";" and ("(" in before or 'extern "C"' in before or "namespace" in before)


def _bare(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def _piece(text: str) -> Piece:
    code = _bare(text)
    stripped = code.strip()
    if stripped.startswith("#"):
        keeps = not re.match(r"#\s*(?:include|pragma|error)", stripped)
        keeps = keeps or bool(_KEPT_HEADERS.match(stripped))
        named = _DEFINE.match(stripped)
        always = keeps and named is None
        words = frozenset(_WORD.findall(stripped)) if named else frozenset[str]()
        return Piece(text, frozenset({named[1]} if named and keeps else ()), words, always)
    words = frozenset(_WORD.findall(code))
    head = stripped.partition("{")[0]
    hosts = not _DEVICE.search(code) and not _TYPE.match(stripped)
    is_function = "(" in head and "{" in stripped and "=" not in head.partition("(")[0]
    if not stripped or _HOSTS_OWN.search(code) or (hosts and is_function and "inline" not in head):
        return Piece(text, frozenset(), words, always=False)
    if re.match(r"(?:extern\s+)?template\s+[^<\s]", stripped):  # what the host wants of templates
        return Piece(text, frozenset(), words, always=False)
    if stripped.startswith(("namespace cg", "using namespace")):
        return Piece(text, frozenset(), frozenset(), always=True)
    return Piece(text, frozenset(_declared(stripped)), words, always=False)


def _declared(stripped: str) -> Iterator[str]:
    """Yield the names that a declaration is known by."""
    plain = _ATTRIBUTES.sub("", stripped)
    plain = re.sub(r"^(?:template\s*<[^<>{};()]*(?:<[^<>]*>[^<>{};()]*)*>\s*)+", "", plain)
    if plain.startswith(("typedef", "using")):
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", plain)
        named = pointer or re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)?;\s*$|using\s+(\w+)\s*=", plain)
        if named is not None:
            yield from filter(None, named.groups())
        return
    if plain.startswith("enum"):
        yield from _WORD.findall(plain)
        return
    if _TYPE.match(plain):
        named = re.match(r"\w+\s+(?:__\w+__\s*)?(\w+)", plain)
        if named is not None:
            yield named[1]
        return
    head = plain.partition("=")[0] if "operator" not in plain.partition("(")[0] else plain
    head = (
        re.sub(r"<[^<>]*>\s*$", "", head.partition("(")[0])
        if "(" in head
        else re.sub(r"\[[^\]]*\]|;", "", head)
    )
    named_by = _WORD.findall(head.partition("operator")[0] or head)
    yield from named_by[-1:]
    if "operator" in head:
        yield from _WORD.findall(plain.partition("(")[2].partition(")")[0])
