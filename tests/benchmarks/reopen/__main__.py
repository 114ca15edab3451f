"""How long it takes until a killed notebook's names are back.

    python -m tests.benchmarks.reopen --backend cuda --gib 20 --json reopen.json
    python -m tests.benchmarks.reopen --backend cuda --then host --gib 0.1

A process makes a session with so many GiB in its buffers, commits it, and is killed by SIGKILL.
Another one opens the folder, uses every name, and compares a digest of each, which is worked out
where the buffers are. With `--then` it does so on that backend, and every value is compared with
what it was: uploads, uniform numbers and their order bit for bit, all else within what a replay
promises.

A part was uploaded (`--uploads`, 5 % of it): these bytes are on the disk twice while the session
runs, and are written before the kill. All else is made again by messages, and takes no disk. Free
about three times that part in `--folder`. The folder is removed in the end.

A row tells seconds and GB/s: `open_s` of `open` alone, `ready_s` until the contexts are up,
`uploads_s` and `made_s` until the buffers of either kind are there, `all_s` of all this together.
`--drop-caches` also has the disk read what was written (it asks Linux to forget the files' pages).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.benchmarks.reopen.notebook import Asked

SIDE = 1024
WITHIN_S = 3.0
"""So soon 20 GiB are wanted back."""
EXACT = ("uniform", "sent", "kept", "sorted")
"""The names of what is equal bit for bit on any backend."""


def told_by(asked: Asked, *, kill: bool) -> dict[str, Any]:
    """Run a process; return what it tells.

    Parameters:
        kill: whether it is killed when it has.

    Raises:
        RuntimeError: it has told nothing.
    """
    command = [sys.executable, "-m", f"{__package__}.notebook", msgspec.json.encode(asked).decode()]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
        finally:
            if kill:
                os.kill(process.pid, signal.SIGKILL)
    if not line:
        raise RuntimeError(f"the process ended with {process.returncode} and has told nothing")
    found: dict[str, Any] = json.loads(line)
    return found


def forget(folder: Path) -> None:
    """Have Linux forget the pages of all files of a folder."""
    for path in folder.rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            try:
                os.fsync(file)
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)


def measured(asked: Asked, then: str, *, cold: bool = False) -> dict[str, Any]:
    """Return a row: a session that is killed, and opened on a backend; same where that is empty.

    Parameters:
        cold: whether the pages of the folder are forgotten between.
    """
    if then:
        beside = Path(asked.folder).parent / "values"
        beside.mkdir()
        asked = msgspec.structs.replace(asked, beside=str(beside))
    was = told_by(asked, kill=True)
    if cold:
        forget(Path(asked.folder))
    backend = then or asked.backend
    now = told_by(msgspec.structs.replace(asked, backend=backend, again=True), kill=False)
    row = {"backend": asked.backend, "then": backend, **was, **now}
    before, after, compared = was["digests"], now.pop("digests", {}), now.get("compared", {})
    row["differs"] = sorted(name for name in before if after.get(name) != before[name])
    row["differs"] += sorted(name for name, one in compared.items() if not fits(name, one))
    del row["digests"]
    uploads_s, made_s = now["uploads_s"] or float("inf"), now["made_s"] or float("inf")
    row["gb_s"] = was["nbytes"] / now["all_s"] / 1e9
    row["uploads_gb_s"] = was["uploaded"] / uploads_s / 1e9
    row["made_gb_s"] = (was["nbytes"] - was["uploaded"]) / made_s / 1e9
    return row


def fits(name: str, compared: dict[str, Any]) -> bool:
    """Whether a name may be so: an exact one has to be equal."""
    exact = name.startswith(EXACT)
    return compared["verdict"] in (("equal",) if exact else ("equal", "within tolerance"))


def lines(row: dict[str, Any]) -> list[str]:
    """Say what a row says."""
    gib = row["nbytes"] / 2**30
    made = (
        f"{row['names']} names of {gib:.3g} GiB, {row['uploaded'] / 2**30:.3g} GiB of it uploaded: "
        f"made in {row['make_s']:.2f} s, committed in {row['commit_s']:.2f} s"
    )
    back = (
        f"killed, and opened on {row['then']}: all back in {row['all_s']:.2f} s "
        f"({row['gb_s']:.2f} GB/s): open {row['open_s']:.2f}, contexts {row['ready_s']:.2f}, "
        f"uploads {row['uploads_s']:.2f} ({row['uploads_gb_s']:.2f} GB/s), "
        f"messages {row['made_s']:.2f} ({row['made_gb_s']:.2f} GB/s); {row['device']}"
    )
    told = [made, back]
    for name, one in row.get("compared", {}).items():
        off = f", off by {one['off']:.3g} where {one['may']:.3g} may be" if "off" in one else ""
        where = f"; at {one['most_at']} {one['was']} is {one['is']}" if off else ""
        told.append(f"{name}: {one['verdict']}{off}{where}")
    told += [f"not here: {name}: {why}" for name, why in row["lost"].items()]
    told.append(f"different: {', '.join(row['differs'])}" if row["differs"] else "all are equal")
    return told


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print it, and fail where a name is lost or another."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--backend", choices=("host", "cuda"), default="host")
    parser.add_argument("--then", choices=("host", "cuda"), default="", help="and compare values")
    parser.add_argument("--gib", type=float, default=20.0)
    parser.add_argument("--uploads", type=float, default=0.05, help="which part is uploaded")
    parser.add_argument("--folder", type=Path, help="where the session is made, and removed")
    parser.add_argument("--drop-caches", action="store_true", help="read from the disk")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="accel_lab-reopen-", dir=given.folder) as folder:
        run = Path(folder) / "run.lab"
        asked = Asked(str(run), given.backend, int(given.gib * 2**30), given.uploads, SIDE)
        row = measured(asked, given.then, cold=given.drop_caches)
    sys.stdout.write("\n".join(lines(row)) + "\n")
    if given.json is not None:
        given.json.write_text(json.dumps(row | {"wanted_s": WITHIN_S}, indent=2))
    return 1 if row["differs"] or row["lost"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
