"""Compile and launch somebody else's kernels, and compare what they make with NumPy."""

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from accel_lab import jit
from accel_lab.compute.device import Device
from accel_lab.errors import AccelError
from tests.benchmarks.public_kernels.case import Case
from tests.benchmarks.public_kernels.cut import cut

LIMIT_S = 120.0


class Outcome(NamedTuple):
    """What became of a kernel.

    Attributes:
        said: why it was refused, or how it was wrong; empty if its results are equal.
        ran: whether it was compiled and ran to its end.
    """

    case: Case
    ran: bool
    said: str


def source_of(case: Case, checkout: Path) -> str:
    """Return the text of a case's kernel with what it needs of its files."""
    return cut("".join(_shown(checkout, file) + "\n" for file in case.files), case.kernel)


def run(device: Device, checkout: Path, cases: Iterable[Case], *, host: bool) -> Iterator[Outcome]:
    """Yield the outcome of each case."""
    for case in cases:
        try:
            options = (*case.options, *(case.on_host if host else ()))
            kernel = jit.compile(device, source_of(case, checkout), case.kernel, options=options)
            for name, value in case.variables.items():
                kernel.globals[name] = value
            given = [device.put(one) if isinstance(one, np.ndarray) else one for one in case.args]
            kernel(
                case.grid,
                case.block,
                tuple(given),
                shared_bytes=case.shared_bytes,
                cooperative=case.cooperative,
                timeout_s=LIMIT_S,
            ).result(LIMIT_S)
            found = {place: device.get(given[place]).result(LIMIT_S) for place in case.expected}
        except (AccelError, TimeoutError) as error:
            cause = error.__cause__ or error
            yield Outcome(case, ran=False, said=f"{type(cause).__name__}: {cause}")
            continue
        wrong = "; ".join(filter(None, (case.wrong(i, one) for i, one in found.items())))
        yield Outcome(case, ran=True, said=wrong)


def commit_of(checkout: Path) -> str:
    """Return the commit of a checkout: git's, or what its file `COMMIT` holds."""
    named = checkout / "COMMIT"
    if named.is_file():
        return named.read_text().strip()
    return _git(checkout, "rev-parse", "HEAD").strip()


def _shown(checkout: Path, file: str) -> str:
    """Return a file of a checkout, or of a git directory without files."""
    path = checkout / file
    return path.read_text() if path.is_file() else _git(checkout, "show", f"HEAD:{file}")


def _git(checkout: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(checkout), *words],  # noqa: S607 - whichever is there
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout
