"""How many of something, as people read it."""


def counted(count: int, noun: str) -> str:
    """Write a number with its noun: 1 block, 2 blocks."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
