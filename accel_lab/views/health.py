"""The health strip: how the cards and processes of a system are, once a second.

A value that is missing says why; none is ever drawn as zero. The last two minutes travel as
columns, so that a page that opens later has them too.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import is_, itemgetter
from typing import ClassVar

import numpy as np

from accel_lab.compute.events.samples import HealthSampled, Reading
from accel_lab.display.sizes import size
from accel_lab.display.table import aligned, as_html
from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

FULL = 0.95
HOT = 0.95
"""Of the temperature at which a card slows itself down."""
GLYPH = "▲"
_COLUMNS = ("Source", "Reading", "Value", "Limit", "Note")
_SMALL = 9.95

Table = dict[str, list[float | None]]


class HealthView(View):
    """The readings of a system's cards and processes."""

    name = "health"
    wants: ClassVar[frozenset[Want]] = frozenset({"health"})

    def __init__(self, source: Lab | Source) -> None:
        super().__init__(source)
        self._drawn: tuple[list[HealthSampled], list[State], bytes] = [], [], b""

    def fold(self, scene: Scene) -> State:
        """Fold the newest sample of each source."""
        state: State = {
            "lab": "" if scene.tree is None else scene.tree.name,
            "sources": self._folded(scene)[0],
            "closed": scene.closed,
        }
        if "health" in scene.unrecorded:
            state["unrecorded"] = scene.unrecorded["health"]
        return state

    def _folded(self, scene: Scene) -> tuple[list[State], bytes]:
        """Return the sources and their columns; folds are more frequent than samples."""
        newest = [samples[-1] for samples in scene.health.values()]
        if len(newest) != len(self._drawn[0]) or not all(map(is_, newest, self._drawn[0])):
            tables = [(samples, _table(samples)) for samples in scene.health.values()]
            sources = [_source(*one) for one in tables]
            self._drawn = newest, sources, b"".join(_columns(*one) for one in tables)
        return self._drawn[1:]

    def pack(self, scene: Scene) -> bytes:
        """Return the samples as Float64, source by source in the order of the state.

        Of each source `samples` moments, wall seconds; then, of each reading in its order, as many
        values; NaN where there is none.
        """
        return self._folded(scene)[1]

    def text(self, state: State) -> str:
        """Draw it as aligned lines, a paragraph a source."""
        return text(state)

    def html(self, state: State) -> str:
        """Draw it as one table."""
        return html(state)


def health(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> HealthView:
    """Return how a system's cards and processes are; display it as the last value of a cell.

    On `cuda` each card tells of itself through NVML: utilisation, memory, power, temperature,
    clocks, what slows it, ECC errors, PCIe and NVLink. Everywhere the notebook's process and each
    context's have their share of the CPU and their memory. A value that is missing says why.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update, at most 30; readings are taken once a second.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(HealthView, lab, rate_hz=rate_hz)


def warning(reading: Reading) -> str:
    """Say in a word what is wrong with a reading; "" when nothing is."""
    value, limit = reading.value, reading.limit
    if value is None:
        return ""
    if reading.name == "throttling":
        return "throttled" if value > 0 else ""
    if reading.name == "ECC uncorrected":
        return "errors" if value > 0 else ""
    if reading.name == "temperature":
        return "hot" if limit and value >= HOT * limit else ""
    if reading.unit == "B":
        return "nearly full" if limit and value > FULL * limit else ""
    return ""


def words(value: float, unit: str) -> str:
    """Write a value with its unit: 3.2 GiB, 43 %, 0.4 %, 61 °C."""
    if unit in ("B", "B/s"):
        return size(round(value)) + unit.removeprefix("B")
    number = f"{value:.1f}" if 0 < value < _SMALL and value % 1 else f"{value:.0f}"
    return f"{number} {unit}".rstrip()


def text(state: State) -> str:
    """Draw a state as aligned lines of text."""
    rows = list(_rows(state))
    lines = [_caption(state)]
    above = ""
    for (source, *_), line in zip(rows, aligned(row[1:] for row in rows), strict=True):
        if source != above:
            lines.append(source)
            above = source
        lines.append(f"  {line}")
    return "\n".join(lines)


def html(state: State) -> str:
    """Draw a state as one table: a caption, a row group a source."""
    groups = (list(rows) for _, rows in groupby(_rows(state), itemgetter(0)))
    return as_html(_caption(state), _COLUMNS, *groups, head=1)


def _source(samples: Sequence[HealthSampled], table: Table) -> State:
    newest = samples[-1]
    readings = []
    for reading in newest.readings:
        past = (value for value in table[reading.name] if value is not None)
        readings.append(_reading(reading, max(past, default=None)))
    state = {"name": newest.source, "samples": len(samples), "at": newest.at, "readings": readings}
    return state | ({"model": newest.model} if newest.model else {})


def _table(samples: Sequence[HealthSampled]) -> Table:
    """Return by its name what each reading of the newest sample was in all of them."""
    # Of two readings of one name the first counts.
    rows = [{one.name: one.value for one in reversed(sample.readings)} for sample in samples]
    return {name: [row.get(name) for row in rows] for name in rows[-1]}


def _reading(reading: Reading, peak: float | None) -> State:
    """Write a reading as plain values; what is empty is left out."""
    if reading.value is None:
        return {"name": reading.name, "missing": f"n/a: {reading.why or 'not known'}"}
    said = words(reading.value, reading.unit)
    optional: State = {"means": reading.why}
    if reading.name == "throttling":  # its value only counts the words
        said, optional = reading.why, {}
    optional["warn"] = warning(reading)
    if reading.limit is not None:
        at_most = "slows down at" if reading.name == "temperature" else "of"
        optional["limit"] = f"{at_most} {words(reading.limit, reading.unit)}"
        if reading.limit > 0:
            optional["share"] = round(min(1.0, reading.value / reading.limit), 4)
        optional["top"] = reading.limit
    if peak and reading.name != "throttling":
        optional["peak"] = words(peak, reading.unit)
    state: State = {"name": reading.name, "words": said}
    return state | {name: value for name, value in optional.items() if value}


def _columns(samples: Sequence[HealthSampled], table: Table) -> bytes:
    columns: list[list[float | None]] = [[sample.at for sample in samples]]
    columns += [table[reading.name] for reading in samples[-1].readings]
    return np.array(columns, "<f8").tobytes()


def _rows(state: State) -> Iterator[tuple[str, str, str, str, str]]:
    for source in state["sources"]:
        model = source.get("model", "")
        title = f"{source['name']}: {model}" if model else source["name"]
        for reading in source["readings"]:
            warn = reading.get("warn", "")
            note = ", ".join(filter(None, (warn and f"{GLYPH} {warn}", reading.get("means", ""))))
            said = reading.get("words", reading.get("missing", ""))
            yield title, reading["name"], said, reading.get("limit", ""), note


def _caption(state: State) -> str:
    ending = " (closed)" if state["closed"] else ""
    title = f"{state['lab'] or 'health'}: health{ending}"
    if state["sources"]:
        return title
    if "unrecorded" in state:
        return f"{title}, not recorded: {state['unrecorded']}"
    return f"{title}, nothing read yet"
