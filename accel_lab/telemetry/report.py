"""One HTML file of a session, to attach to a bug report: timeline, kernels, faults, versions."""

import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from accel_lab.actor.events import Event
from accel_lab.compute.events.samples import Slice
from accel_lab.display.sizes import size
from accel_lab.errors import RecordingError
from accel_lab.telemetry.secrets import scrubber
from accel_lab.telemetry.tables import Known, cause_of, is_fault, of_recording, told
from accel_lab.views.past.recording import Recording
from accel_lab.views.scene.observer import Lab, observer_of
from accel_lab.views.scene.scene import Scene
from accel_lab.views.tallies.device_metrics import devices_in
from accel_lab.views.tallies.kernel_tally import kernel_tally

DRAWN = 4_000
"""So many slices are drawn, the newest; the table counts all."""
LISTED = 1_000
KERNELS = 200
WIDTH, ROW = 1000.0, 22
PACKAGES = (
    "accel-lab", "numpy", "scipy", "msgspec", "ml-dtypes", "cupy-cuda12x", "cupy-cuda13x",
    "nvmath-python", "cuda-core", "cuda-python", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "torch",
    "jupyterlab", "ipykernel",
)  # fmt: skip
COLORS = {"kernel": "#3b6fb6", "copy": "#3a9a6b", "function": "#b5762a", "untraced": "#999"}
STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1060px;color:#222;
background:#fff}
table{border-collapse:collapse;margin:.5em 0}td,th{padding:.15em .7em;text-align:left;
border-bottom:1px solid #ddd;vertical-align:top}td.n{text-align:right;font-variant-numeric:
tabular-nums}td.t{overflow-wrap:anywhere}svg{width:100%;background:#f7f7f7}.fault{color:#a11}
"""


def report(lab: Lab | Recording, path: str | Path) -> Path:
    """Write one HTML file of a session and return its path; blocks for the devices and the disk.

    It needs no network and no other file. Left out are the text of cells, what code has printed,
    the environment, the contents of buffers, and in all texts what looks like a secret; read it
    before you send it on. A file that is there is replaced.

    Parameters:
        lab: the system, or a recording of one; of a system, what its views have seen.

    Raises:
        RecordingError: the file cannot be written.
    """
    if isinstance(lab, Recording):
        known, damage = of_recording(lab), lab.damage
    else:
        observer, damage = observer_of(lab), ""
        with observer.lock:
            known = Known(observer.look().copy(), lab.events.history())
    page = page_of(lab.name, known, scrubber(), damage=damage)
    target = Path(path)
    try:
        target.write_text(page, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise RecordingError(f"{path} cannot be written: {error}") from error
    return target


def page_of(name: str, known: Known, scrub: Callable[[str], str], *, damage: str = "") -> str:
    """Return the page of what is known."""

    def safe(text: object) -> str:
        return escape(scrub(str(text)))

    scene = known.scene
    faults = [fact for fact in known.events if is_fault(fact)]
    parts = [
        _summary(scene, known.events, len(faults), damage, safe),
        "<h2>Timeline</h2>" + _timeline(scene, faults, safe),
        "<h2>Kernels, copies and functions</h2>" + _kernels(scene, safe),
        "<h2>Faults</h2>" + _faults(faults, safe),
        "<h2>Readings</h2>" + _readings(scene, safe),
        "<h2>Events</h2>" + _events(known.events, safe),
        "<h2>Versions</h2>" + _table(("Package", "Version"), _versions(safe)),
    ]
    title = safe(f"accel_lab: {name}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style></head><body><h1>{title}</h1>{''.join(parts)}</body></html>\n"
    )


Safe = Callable[[object], str]
Cell = str | tuple[str, str]


def _summary(scene: Scene, events: list[Event], faults: int, damage: str, safe: Safe) -> str:
    span = (
        f"{_clock(events[0].at)} to {_clock(scene.at)}" if events and scene.at else "nothing seen"
    )
    lines = [("Time", span), ("Faults", str(faults))]
    for node in devices_in(scene):
        used = "" if node.used_bytes is None else f", {size(node.used_bytes)} used"
        detail = f"{node.state}, generation {node.generation}, {node.restarts} restarts{used}"
        lines.append((safe(node.name), safe(f"{detail}; {node.detail}")))
    if damage:
        lines.append(("Damage", safe(damage)))
    return _table(("What", ""), lines)


def _timeline(scene: Scene, faults: list[Event], safe: Safe) -> str:
    """Draw the newest work by stream, and faults as lines."""
    work = [(d, one) for _, d, one in scene.slices if one.end is not None][-DRAWN:]
    if not work:
        return "<p>No work was traced.</p>"
    first = min(one.start for _, one in work)
    last = max(one.end or one.start for _, one in work)
    scale = WIDTH / max(last - first, 1e-9)
    rows = {key: at for at, key in enumerate(dict.fromkeys((d, one.stream) for d, one in work))}
    drawn = [_bar(d, one, rows[d, one.stream], first, scale, safe) for d, one in work]
    height = ROW * len(rows)
    for fact in faults:
        if first <= fact.at <= last:
            x, text = (fact.at - first) * scale, safe(f"{type(fact).__name__}: {cause_of(fact)}")
            drawn.append(
                f'<line x1="{x:.2f}" x2="{x:.2f}" y1="0" y2="{height}" stroke="#c22">'
                f"<title>{text}</title></line>"
            )
    for (device, stream), row in rows.items():
        label = safe(f"{device} {stream}")
        drawn.append(f'<text x="4" y="{row * ROW + 9}" font-size="9">{label}</text>')
    hidden = scene.traced - len(work) + sum(scene.untraced.values())
    note = f"<p>{last - first:.6g} s from {_clock(first)}. {hidden} messages are not drawn.</p>"
    return f'<svg viewBox="0 0 {WIDTH:g} {height}">{"".join(drawn)}</svg>{note}'


def _bar(device: str, one: Slice, row: int, first: float, scale: float, safe: Safe) -> str:
    took = (one.end or one.start) - one.start
    color = "#c22" if one.lost else COLORS[one.kind]
    what = safe(f"{one.name} #{one.seq} on {device}, {took * 1e6:.1f} µs")
    return (
        f'<rect x="{(one.start - first) * scale:.3f}" y="{row * ROW + 10}" height="{ROW - 12}"'
        f' width="{max(took * scale, 0.3):.3f}" fill="{color}"><title>{what}</title></rect>'
    )


def _kernels(scene: Scene, safe: Safe) -> str:
    listed, rest = kernel_tally(scene).listed(KERNELS)
    rows: list[tuple[Cell, ...]] = [
        (safe(one.name), safe(one.device), safe(one.stream), one.kind,
         *_numbers(one.calls, f"{one.total * 1e3:.3f}",
                   f"{one.total / one.calls * 1e6:.1f}" if one.calls else "",
                   f"{one.longest * 1e6:.1f}", one.lost))
        for one in sorted(listed, key=lambda one: -one.total)
    ]  # fmt: skip
    if rest is not None:
        mean = f"{rest.total / rest.calls * 1e6:.1f}" if rest.calls else ""
        numbers = rest.calls, f"{rest.total * 1e3:.3f}", mean, f"{rest.longest * 1e6:.1f}"
        rows.append((f"{rest.kinds} others", "", "", "", *_numbers(*numbers, rest.lost)))
    heads = "Name", "Device", "Stream", "Kind", "Calls", "Total ms", "Mean µs", "Longest µs", "Lost"
    return _table(heads, rows) if rows else "<p>None were traced.</p>"


def _faults(faults: list[Event], safe: Safe) -> str:
    if not faults:
        return "<p>None.</p>"
    return _table(
        ("When", "Fault", "Where", "Cause"),
        [
            (
                _clock(one.at),
                f'<span class="fault">{safe(type(one).__name__)}</span>',
                safe(getattr(one, "device", "") or getattr(one, "path", "")),
                ("t", safe(cause_of(one))),
            )
            for one in faults[-LISTED:]
        ],
    )


def _readings(scene: Scene, safe: Safe) -> str:
    rows: list[tuple[Cell, ...]] = [
        (safe(source), safe(one.name),
         ("n", "n/a" if one.value is None else f"{one.value:,.6g} {one.unit}"), safe(one.why))
        for source, samples in scene.health.items()
        for one in samples[-1].readings
    ]  # fmt: skip
    if not rows:
        return "<p>None were taken.</p>"
    return _table(("Source", "Reading", "Value", "Note"), rows)


def _events(events: list[Event], safe: Safe) -> str:
    kept = [one for one in events if type(one).__name__ != "OutputPrinted"]
    rows: list[tuple[Cell, ...]] = [
        (_clock(one.at), type(one).__name__, safe(getattr(one, "device", "")), text)
        for one in kept[-LISTED:]
        for text in [("t", safe(told(one)))]
    ]
    return _table(("When", "Event", "Device", "Detail"), rows) if rows else "<p>None.</p>"


def _versions(safe: Safe) -> Iterator[tuple[Cell, ...]]:
    """Yield what this report was written with."""
    yield "Python", safe(sys.version.partition(" (")[0])
    yield "System", safe(f"{platform.system()} {platform.release()} {platform.machine()}")
    for package in PACKAGES:
        try:
            yield package, safe(version(package))
        except PackageNotFoundError:
            yield package, "not installed"


def _numbers(*values: object) -> Iterator[Cell]:
    return (("n", str(value)) for value in values)


def _table(heads: Iterable[str], rows: Iterable[tuple[Cell, ...]]) -> str:
    """Return a table of cells that are HTML already, each with its class, if it has one."""

    def cell(one: Cell) -> str:
        return f"<td>{one}</td>" if isinstance(one, str) else f'<td class="{one[0]}">{one[1]}</td>'

    head = "".join(f"<th>{one}</th>" for one in heads)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03d} UTC"
