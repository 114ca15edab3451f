"""The largest owners in an OutOfMemory, as a sentence."""

from collections.abc import Sequence

from accel_lab.display.sizes import size

NAMED = 3
"""How many names of an owner are told; the error has all that were found."""


def keeper(names: Sequence[str], made_by: str) -> str:
    """Return what memory is called: by the names that keep it, else in brackets by its maker."""
    return ", ".join(names) if names else f"({made_by})"


def told(owners: tuple[tuple[str, int], ...], kept_by: tuple[tuple[str, ...], ...]) -> str:
    """Say who has how much, and who keeps that."""
    parts = []
    for number, (label, nbytes) in enumerate(owners):
        known = kept_by[number] if number < len(kept_by) else ()
        parts.append(f"{label} with {size(nbytes)}{kept(known)}")
    return f"; the largest owners: {', '.join(parts) or 'none of ours'}"


def kept(names: tuple[str, ...]) -> str:
    """Say in brackets who keeps something; empty where nobody is known to."""
    shown = ", ".join(names[:NAMED])
    if len(names) > NAMED:
        shown += f" and {len(names) - NAMED} more"
    return f" (kept by {shown})" if shown else ""
