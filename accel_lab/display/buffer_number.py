"""The numbers of buffers, as programs have them and as people read them.

A message announces the buffer that it makes: the notebook counts these, 1, 2, 3. What a function or
a cell makes is counted by its context. Such a number carries a mark and the context's generation,
so that no two buffers ever have the same; it has sixteen digits, and nobody can read it.
"""

MARK = 1 << 52
"""In the number of a buffer that no message announces."""
_GENERATIONS = 0xFFFFF
_COUNT_BITS = 32


def unannounced(generation: int, count: int) -> int:
    """Return the number of what a context makes as its `count`-th answer.

    It is less than 2**53, so that a browser can count with it.
    """
    return MARK | (generation & _GENERATIONS) << _COUNT_BITS | count


def short(number: int) -> str:
    """Write a buffer's number for people: `3`, `f1` of a function's first, `f1g2` of generation 2.

    `widgets/shared/format.js` says the same.
    """
    if number < MARK:
        return str(number)
    generation = number >> _COUNT_BITS & _GENERATIONS
    count = number & ((1 << _COUNT_BITS) - 1)
    return f"f{count}" if generation == 1 else f"f{count}g{generation}"
