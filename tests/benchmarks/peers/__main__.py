"""Compare an empty message with other actor systems: `python -m tests.benchmarks.peers`.

Run it in the root of a checkout; the extra `peers` installs the other systems.
"""

from typing import Annotated

import typer
from rich.console import Console

from accel_lab import System
from accel_lab.bench.effort import FULL, QUICK
from accel_lab.bench.machine import machine
from accel_lab.bench.peer import Peer
from accel_lab.bench.report import Report
from accel_lab.bench.row import judged
from tests.benchmarks.peers.comparison import compare


def main(
    *,
    backend: Annotated[str, typer.Option(help="auto, host or cuda.")] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Few rounds: rough, in seconds.")] = False,
) -> None:
    """Ask and tell other actor systems, those that are installed, an empty message; minutes."""
    versions: dict[str, str] = {}
    notes: list[str] = []
    with System(backend, devices=1) as lab:
        device = lab.devices[0]
        rows = compare(device, QUICK if quick else FULL, versions, notes)
        here = machine(Peer(device, lab.backend), lab.tree().children[0].detail)
        here.libraries.update(versions)
        report = Report(
            backend=lab.backend,
            quick=quick,
            machine=here,
            rows=tuple(map(judged, rows)),
            notes=tuple(notes),
        )
    if json:
        typer.echo(report.to_json())
    else:
        Console().print(report, crop=False)


if __name__ == "__main__":
    typer.run(main)
