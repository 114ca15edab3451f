"""The use of a device's memory over time, in as few numbers as a small chart can show."""

from collections.abc import Collection, Iterable
from typing import Any

STEPS = 60
"""How many steps a history is drawn with at most."""
FAULTS = 20
"""How many faults are marked in it, the newest."""

Level = tuple[float, int]
"""From when on how many bytes were in use."""


def history(levels: Collection[Level], faults: Iterable[float]) -> dict[str, Any] | None:
    """Fold the levels of a device; None where there were none, or all were 0.

    The time from the first change to the last is cut into equal parts. Of each the most is told, so
    that no peak goes; a level holds until the next one. Times are seconds from `at`, levels
    percent of `peak`.
    """
    if not levels:
        return None
    levels = list(levels)
    first, last = levels[0][0], levels[-1][0]
    peak_at, peak = max(levels, key=lambda level: level[1])
    if not peak:
        return None
    width = (last - first) / STEPS or 1.0
    steps: list[list[float]] = []
    number, used = 0, 0
    for part in range(STEPS):
        most = used
        while number < len(levels) and (
            levels[number][0] < first + (part + 1) * width or part == STEPS - 1
        ):
            used = levels[number][1]
            most = max(most, used)
            number += 1
        _step(steps, part * width, most, peak)
    _step(steps, last - first, used, peak)
    marked = sorted(round(at - first, 1) for at in faults if at >= first)[-FAULTS:]
    found: dict[str, Any] = {"at": first, "peak": peak, "peak_at": peak_at, "steps": steps}
    return found | {"faults": marked} if marked else found


def _step(steps: list[list[float]], after_s: float, used: int, peak: int) -> None:
    """Add a step, unless the level stays as it is."""
    level = -(-100 * used // peak)
    if not steps or steps[-1][1] != level:
        steps.append([round(after_s, 1), level])
