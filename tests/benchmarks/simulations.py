"""How fast simulations step, images are filtered and keys are inserted.

    python -m tests.benchmarks.simulations --backend cuda --json simulations.json

Each figure is the median of rounds; a round is so many steps in a row, and one wait. The aims are
those of a picture on the screen: 60 steps a second, and 1e8 keys a second.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from accel_lab import System
from accel_lab.blueprints import realtime
from accel_lab.compute.device import Device


class Case(NamedTuple):
    """What is measured.

    Attributes:
        name: with its extents.
        run: does it so often, and waits for the end.
        each: how much is done in one.
        aim: how much a second.
    """

    name: str
    run: Callable[[int], None]
    each: int = 1
    aim: float = 60.0


def simulation(lab: System, make: Callable[[], realtime.Simulation]) -> Callable[[int], None]:
    """Return what steps a simulation."""
    actor = lab.spawn(make)
    return lambda count: actor.ask(realtime.Step(count)).result()


def cases(lab: System, *, small: bool) -> Iterator[Case]:
    """Give all cases; each is closed by the next one's beginning."""
    (gpu,) = lab.devices
    draw = np.random.default_rng(0)
    yield particles(lab, gpu, draw, 10_000 if small else 1_000_000)
    n = 32 if small else 512
    yield Case(
        f"cloth {n} x {n}", simulation(lab, lambda: realtime.ClothSimulationActor(gpu, n, n))
    )
    thickness = 0.5 / n
    yield Case(
        f"cloth {n} x {n} that collides with itself",
        simulation(
            lab,
            lambda: realtime.ClothSimulationActor(gpu, n, n, spacing=1 / n, thickness=thickness),
        ),
    )
    m = 64 if small else 1024
    yield Case(
        f"fluid {m} x {m}, 40 sweeps",
        simulation(lab, lambda: realtime.FluidSimulationActor(gpu, m, m, eddies=4.0, lift=40.0)),
    )
    yield images(lab, gpu, draw, (54, 96) if small else (2160, 3840))
    yield keys(lab, gpu, draw, 10_000 if small else 10_000_000)


def particles(lab: System, gpu: Device, draw: Any, count: int) -> Case:
    """Return discs that fill half of a box, and collide."""
    side = int(count**0.5)
    grid = (np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2) + 0.5) / side
    positions = gpu.put(grid.astype("float32"))
    velocities = gpu.put(draw.normal(0, 0.1, grid.shape).astype("float32"))
    make = realtime.ParticleSystemActor
    run = simulation(lab, lambda: make(gpu, positions, velocities, radius=0.4 / side))
    return Case(f"particles {side * side}", run)


def images(lab: System, gpu: Device, draw: Any, size: tuple[int, int]) -> Case:
    """Return a blur and Sobel's edges of images of three channels."""
    blur = np.array([1, 4, 6, 4, 1]) / 16
    filters = lab.spawn(
        lambda: realtime.ImageFilterPipeline(gpu, realtime.Separable(blur, blur), realtime.Sobel())
    )
    image = gpu.put(draw.random((*size, 3), "float32"))

    def run(count: int) -> None:
        for _ in range(count):
            made = filters.ask(realtime.FilterImage(image)).result()
        gpu.ping().result(60)
        del made

    return Case(f"images {size[1]} x {size[0]}: blur, Sobel", run)


def keys(lab: System, gpu: Device, draw: Any, count: int) -> Case:
    """Return inserts of random keys, into a map that has room for them."""
    many = gpu.put(draw.integers(-(1 << 62), 1 << 62, count))
    values = gpu.put(np.arange(count))
    table = lab.spawn(lambda: realtime.GpuHashMapActor(gpu, capacity=2 * count))

    def run(times: int) -> None:
        for _ in range(times):
            table.ask(realtime.Insert(many, values)).result()

    return Case(f"hash map: {count} keys at once", run, count, 1e8)


def measured(case: Case, least_s: float, rounds: int) -> float:
    """Return how much is done in a second."""
    case.run(1)
    begin = time.perf_counter()
    case.run(1)
    count = max(1, int(least_s / (time.perf_counter() - begin)))
    rates = []
    for _ in range(rounds):
        begin = time.perf_counter()
        case.run(count)
        rates.append(count * case.each / (time.perf_counter() - begin))
    return statistics.median(rates)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.simulations")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny extents, to try it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    rows: dict[str, float] = {}
    sys.stdout.write("| what | a second | aim |\n|---|---|---|\n")
    with System(options.backend, 1) as lab:
        for case in cases(lab, small=options.small):
            rows[case.name] = measured(case, 0.01 if options.small else 0.5, options.rounds)
            sys.stdout.write(f"| {case.name} | {rows[case.name]:.3g} | {case.aim:.3g} |\n")
            sys.stdout.flush()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
