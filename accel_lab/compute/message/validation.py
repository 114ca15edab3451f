"""What may be given as an option: seconds, bytes, a count, a word."""

import operator
from collections.abc import Collection
from contextlib import suppress
from numbers import Real
from typing import Any

from accel_lab.errors import InvalidArgument


def require_timeout(timeout_s: Any, what: str = "timeout_s") -> float | None:
    """Return a limit that a message may have.

    Raises:
        InvalidArgument: it is neither None nor above 0.
    """
    if timeout_s is None:
        return None
    if _is_positive(timeout_s):
        return float(timeout_s)
    text = f"{what} is a number of seconds above 0, or None for ever, not {timeout_s!r}"
    raise InvalidArgument(text)


def require_seconds(seconds: Any, what: str) -> float:
    """Return a time that has to be given.

    Raises:
        InvalidArgument: it is not above 0.
    """
    if _is_positive(seconds):
        return float(seconds)
    raise InvalidArgument(f"{what} is a number of seconds above 0, not {seconds!r}")


def require_bytes(nbytes: Any, what: str) -> int | None:
    """Return a number of bytes, as 4 << 30 or 4e9, or None.

    Raises:
        InvalidArgument: it is neither None nor a whole number above 0.
    """
    if nbytes is None or (_is_positive(nbytes) and float(nbytes).is_integer()):
        return None if nbytes is None else int(nbytes)
    raise InvalidArgument(f"{what} must be positive, a number of bytes, not {nbytes!r}")


def require_count(count: Any, what: str) -> int:
    """Return a count.

    Raises:
        InvalidArgument: it is no integer of 0 or more.
    """
    try:
        found = operator.index(count)
    except TypeError:
        found = -1
    if found < 0 or isinstance(count, bool):
        raise InvalidArgument(f"{what} is a count, 0 or more, not {count!r}")
    return found


def require_word(word: Any, what: str, words: Collection[str]) -> None:
    """Refuse what is none of these words.

    Raises:
        InvalidArgument: it is not.
    """
    if word not in words:
        raise InvalidArgument(f"{what} is {' or '.join(words)}, not {word!r}")


def _is_positive(number: Any) -> bool:
    if not isinstance(number, Real) or _is_bool(number):
        return False
    with suppress(OverflowError):
        return float(number) > 0
    return False


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)
