"""The largest owners in an OutOfMemory, as a sentence."""

from accel_lab.display.sizes import size

NAMED = 3
"""How many names of an owner are told; the error has all that were found."""


def told(owners: tuple[tuple[str, int], ...], kept_by: tuple[tuple[str, ...], ...]) -> str:
    """Say who has how much, and who keeps that."""
    parts = []
    for number, (label, nbytes) in enumerate(owners):
        known = kept_by[number] if number < len(kept_by) else ()
        shown = ", ".join(known[:NAMED])
        if len(known) > NAMED:
            shown += f" and {len(known) - NAMED} more"
        parts.append(f"{label} with {size(nbytes)}" + (f" (kept by {shown})" if shown else ""))
    return f"; the largest owners: {', '.join(parts) or 'none of ours'}"
