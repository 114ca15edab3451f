"""What the patterns view draws, as plain values: `widgets/patterns/draw.js` draws the same.

A state is `{lab, patterns, closed}`. A pattern is `{name, kind, state, waiting, running, answered,
…}`; what is zero, empty or unknown is left out.
"""

from collections.abc import Iterator

from accel_lab.compute.events.patterns import Decision, Part, PatternLook
from accel_lab.display.table import in_one_line
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.view import State

PARTS = 64
LINE = 120
ENDS = ("failed", "expired", "cancelled", "refused")
"""How a request may end without an answer."""
_THREE_DIGITS = 0.9995


def state_of(scene: Scene) -> State:
    """Fold a scene into plain values."""
    name = "" if scene.tree is None else scene.tree.name
    found = [_pattern(one, state_in(scene, one.name)) for one in scene.patterns]
    return {"lab": name, "patterns": found, "closed": scene.closed}


def state_in(scene: Scene, pattern: str) -> str:
    """Return what a pattern's actor does; one that is not there any more has stopped."""
    nodes = () if scene.tree is None else scene.tree.children
    return next((one.state for one in nodes if one.name == pattern), "stopped")


def took(seconds: float) -> str:
    """Write how long an answer took: 340 µs, 12.5 ms, 1.2 s."""
    for unit_s, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= _THREE_DIGITS * unit_s:
            return f"{float(f'{seconds / unit_s:.3g}'):g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _pattern(look: PatternLook, word: str) -> State:
    state: State = {"name": look.name, "kind": look.kind, "state": word}
    state |= {one: getattr(look, one) for one in ("waiting", "running", "answered")}
    parts = look.parts[:PARTS]
    optional = {
        **{one: getattr(look, one) for one in ENDS},
        "calls": look.calls,
        "size": f"{look.members / look.calls:.3g}" if look.calls else "",
        "reruns": look.reruns,
        "p50": took(look.p50_s) if look.answered else "",
        "p99": took(look.p99_s) if look.answered else "",
        "more": [list(one) for one in _more(look)],
        "noun": look.noun if parts else "",
        "parts": [_part(one) for one in parts],
        "unlisted": len(look.parts) - len(parts),
        "decisions": [_decision(one) for one in look.decisions],
    }
    return state | {name: value for name, value in optional.items() if value}


def _part(one: Part) -> State:
    optional = {
        "word": one.word,
        "detail": in_one_line(one.detail, LINE),
        "waiting": one.waiting,
        "running": one.running,
        "done": one.done,
        "failed": one.failed,
    }
    return {"name": one.name} | {name: value for name, value in optional.items() if value}


def _more(look: PatternLook) -> Iterator[tuple[str, str]]:
    """Yield what only this kind counts, but for what its parts say."""
    names = {one.name for one in look.parts}
    for what, value in look.more:
        if not any(what == name or what.endswith(f" {name}") for name in names):
            yield what, value


def _decision(one: Decision) -> State:
    numbers = ", ".join(map(str, one.requests))
    more = f" and {one.more} more" if one.more else ""
    why = in_one_line(one.why, LINE)
    state: State = {"at": one.at, "what": one.decision, "why": why}
    return state | ({"of": numbers + more} if numbers else {})
