"""What a session must not keep: texts that look like a key or a password."""

import os
from functools import lru_cache

from accel_lab.telemetry.secrets import GONE, is_secret_name, names_a_secret, without_keys

_LEAST = 6
"""A value of the environment that is shorter stands in too many texts."""


@lru_cache(maxsize=1 << 14)
def _has_key(text: str) -> bool:
    return without_keys(text) != text


class Secrets:
    """Knows secrets by their names, by their forms, and those of the environment by their values.

    A secret that looks like any other word, and is in no variable of the environment, cannot be
    known.
    """

    def __init__(self) -> None:
        self._values = [
            value
            for name, value in os.environ.items()
            if len(value) >= _LEAST and is_secret_name(name)
        ]

    def why(self, name: str, text: str) -> str:
        """Return why a text is not kept; empty if it may be."""
        if text and names_a_secret(name, text):
            return f"the name {name!r} says that it is a secret"
        if any(value in text for value in self._values):
            return "it holds a secret of the environment"
        return "it looks like a secret" if _has_key(text) else ""

    def scrubbed(self, source: str) -> str:
        """Return a cell's text without secrets."""
        for value in self._values:
            source = source.replace(value, GONE)
        return without_keys(source)
