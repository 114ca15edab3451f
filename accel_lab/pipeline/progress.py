"""How far a pipeline is: a row for each stage, as text and as a table in a notebook."""

from typing import NamedTuple

from accel_lab.display.table import as_html, as_text

COLUMNS = (
    "stage",
    "on",
    "in",
    "waiting",
    "running",
    "done",
    "out",
    "again",
    "skipped",
    "no input",
    "no room",
)
NUMBERS = COLUMNS[2:]


class StageProgress(NamedTuple):
    """One stage at one moment: what it holds is waiting, running or done, `capacity` at most.

    Attributes:
        received: how many items have come so far.
        done: how many wait for room in the next stage, or for one before them.
        passed: how many have gone on.
        reruns: how often an item was run again after a fault.
        skipped: how many were left out with `on_error="skip"`.
        input_s: for how long it could run one more and nothing to run.
        output_s: for how long it had something done that the next stage had no room for.
    """

    name: str
    devices: tuple[str, ...]
    capacity: int
    received: int
    waiting: int
    running: int
    done: int
    passed: int
    reruns: int
    skipped: int
    input_s: float
    output_s: float


class Progress(NamedTuple):
    """A pipeline at one moment.

    Attributes:
        pipeline: its name.
        state: `ready`, `running`, `done`, `failed` or `closed`.
        seconds: since it began; how long it took, when it is over.
        stages: the source first.
    """

    pipeline: str
    state: str
    seconds: float
    stages: tuple[StageProgress, ...]

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                one.name,
                ", ".join(one.devices) or "host",
                *(f"{count:,}" for count in one[3:10]),
                *(f"{seconds:.1f} s" for seconds in one[10:]),
            )
            for one in self.stages
        ]

    def _title(self) -> str:
        return f"{self.pipeline}: {self.state}, {self.seconds:.1f} s"

    def __repr__(self) -> str:
        return "\n".join((self._title(), *as_text(COLUMNS, self._rows(), NUMBERS)))

    def _repr_html_(self) -> str:
        return as_html(self._title(), COLUMNS, self._rows())
