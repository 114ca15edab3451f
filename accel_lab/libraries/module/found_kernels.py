"""Which kernels a source has, read off its text: where nobody names them."""

import re

from accel_lab.libraries.jit.comments import without_comments

_TEXTS = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'')
_TOKENS = re.compile(
    r"(?P<template>\btemplate\b)|(?P<kernel>\b__global__\b)|\bnamespace\s*(?P<space>[\w:]*)\s*\{"
    r"|(?P<mark>[{};])"
)
_BOUNDS = re.compile(r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)")
_NAME = re.compile(r"[^(){};]*?\b(?P<name>[A-Za-z_]\w*)\s*\(")


def kernels_in(source: str) -> tuple[str, ...]:
    """Return the `__global__` functions that are no templates, with their namespaces, in order.

    What a macro makes is not seen: such kernels have to be named.
    """
    code = _BOUNDS.sub("", _TEXTS.sub('""', without_comments(source)))
    spaces: list[str] = []
    found: dict[str, None] = {}
    is_template = False
    for token in _TOKENS.finditer(code):
        if token["template"]:
            is_template = True
        elif token["kernel"]:
            named = _NAME.match(code, token.end())
            if named is not None and not is_template:
                found["::".join((*filter(None, spaces), named["name"]))] = None
        elif token["space"] is not None:
            spaces.append(token["space"])
        else:
            is_template = False
            if token["mark"] == "{":
                spaces.append("")
            elif token["mark"] == "}" and spaces:
                spaces.pop()
    return tuple(found)
