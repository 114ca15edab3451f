"""Snapshots in a folder: each content is there once, and a step names its own.

    contents/1f0c…   the bytes of an array, under their digest
    step-000000050.json   names, dtypes, shapes and digests of the arrays after a step

A step's file is written last, and takes its name when it is whole: whatever is killed, each step
that is there can be read. What no step names any more is removed.
"""

import json
import re
import threading
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from accel_lab.blueprints.train.snapshots.snapshot import Array, Asked, Snapshot
from accel_lab.compute.arrays.dtypes import numpy_dtype
from accel_lab.compute.files.saving import replaced
from accel_lab.errors import AccelError, FileDamaged, InvalidArgument

VERSION = 1
_STEP = re.compile(r"step-(\d+)\.json\Z")


class Checkpoints:
    """Keeps snapshots in a folder, on a thread of its own; training goes on meanwhile.

    A folder is for one trainer at a time. Arrays that have not changed are not written again. What
    could not be written is raised by the next call.

    Attributes:
        folder: where; it is made.
        keep: how many steps stay, the newest ones.
    """

    def __init__(self, folder: str | Path, *, keep: int = 3) -> None:
        if type(keep) is not int or keep < 1:
            raise InvalidArgument(f"Checkpoints: keep is {keep!r}; it is an integer from 1")
        self.folder = Path(folder)
        self.keep = keep
        self._contents = self.folder / "contents"
        self._contents.mkdir(parents=True, exist_ok=True)
        self._writing: threading.Thread | None = None
        self._failed: BaseException | None = None

    @property
    def steps(self) -> list[int]:
        """The steps that are there."""
        found = (_STEP.match(path.name) for path in self.folder.iterdir())
        return sorted(int(one[1]) for one in found if one)

    @property
    def last(self) -> int | None:
        """The newest step that is there."""
        return max(self.steps, default=None)

    def require_own(self, step: int) -> None:
        """Refuse a folder with later steps, which nobody went on from: they would be removed.

        Raises:
            InvalidArgument: there are some.
        """
        if self.last is not None and self.last > step:
            text = f"{self.folder} has the steps {self.steps} of another run"
            raise InvalidArgument(f"{text}: resume() goes on from there, or give an empty folder")

    def take(self, asked: Asked) -> None:
        """Have it written as soon as its arrays arrive; waits for the one before.

        Raises:
            AccelError: the one before could not be written.
        """
        self.flush()
        # No daemon: the end of the program waits for what it has begun to write.
        self._writing = threading.Thread(
            target=self._write, args=(asked,), name=f"checkpoint {asked.step}", daemon=False
        )
        self._writing.start()

    def flush(self) -> None:
        """Wait until all that was taken is on the disk.

        Raises:
            AccelError: it could not be written.
        """
        if self._writing is not None:
            self._writing.join()
            self._writing = None
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def newest(self) -> Snapshot | None:
        """Return the last one; None where there is none.

        Raises:
            FileDamaged: its bytes are not those that were written.
        """
        self.flush()
        steps = self.steps
        return self.load(steps[-1]) if steps else None

    def load(self, step: int) -> Snapshot:
        """Return the snapshot of a step.

        Raises:
            InvalidArgument: there is none.
            FileDamaged: its bytes are not those that were written.
        """
        path = self._path(step)
        if not path.exists():
            raise InvalidArgument(f"{self.folder} has the steps {self.steps}, and no {step}")
        try:
            told = json.loads(path.read_bytes())
            version = told["version"]
            rows, facts = told["arrays"], told["facts"]
        except (ValueError, KeyError, TypeError) as error:
            raise FileDamaged(f"{path} is no checkpoint: {error}; {self._others(step)}") from error
        if version != VERSION:
            raise FileDamaged(f"{path} is of version {version!r}, and this reads {VERSION}")
        return Snapshot(step, {name: self._read(step, name, rows[name]) for name in rows}, facts)

    def _read(self, step: int, name: str, row: dict[str, Any]) -> Array:
        why: object = "its bytes are others"
        try:
            digest, shape = row["digest"], tuple(row["shape"])
            dtype = numpy_dtype(row["dtype"])
            data = (self._contents / digest).read_bytes()
            if digest_of(data) == digest:
                return np.frombuffer(data, dtype).reshape(shape)
        except (OSError, ValueError, KeyError, TypeError, AccelError) as error:
            why = error
        text = f"{self.folder}: {name!r} of step {step} is damaged: {why}"
        raise FileDamaged(f"{text}; {self._others(step)}")

    def _others(self, step: int) -> str:
        left = [one for one in self.steps if one != step]
        if not left:
            return "no other is there"
        text = f"load(step) reads one of the other steps, {left}"
        return f"{text}; without {self._path(step).name} resume() goes on from the newest of these"

    def _write(self, asked: Asked) -> None:
        try:
            snapshot = asked.arrived()
            if snapshot is None:
                return  # a fault took it: the trainer goes back to the one before
            rows = {name: self._write_array(x) for name, x in snapshot.arrays.items()}
            told = {"version": VERSION, "arrays": rows, "facts": snapshot.facts}
            with replaced(self._path(snapshot.step)) as file:
                file.write(json.dumps(told).encode())
            self._tidy(snapshot.step)
        except BaseException as error:  # noqa: BLE001 - the next call raises it
            self._failed = error

    def _write_array(self, x: Array) -> dict[str, Any]:
        data = np.ascontiguousarray(x).tobytes()
        digest = digest_of(data)
        path = self._contents / digest
        if not path.exists():
            with replaced(path) as file:
                file.write(data)
        return {"dtype": str(x.dtype), "shape": list(x.shape), "digest": digest}

    def _tidy(self, newest: int) -> None:
        """Remove old steps, those of a future that was given up, and contents that none names."""
        steps = [step for step in self.steps if step <= newest]
        for step in {*self.steps} - {*steps[-self.keep :]}:
            self._path(step).unlink()
        named = set()
        for step in self.steps:
            try:
                rows = json.loads(self._path(step).read_bytes())["arrays"]
                named |= {row["digest"] for row in rows.values()}
            except (ValueError, KeyError, TypeError, AttributeError):
                return  # it is damaged, and nobody knows what is still its own
        for path in self._contents.iterdir():
            if path.name not in named:
                path.unlink()

    def _path(self, step: int) -> Path:
        return self.folder / f"step-{step:09}.json"

    def __repr__(self) -> str:
        return f"Checkpoints({str(self.folder)!r}, steps {self.steps})"


def digest_of(data: bytes) -> str:
    """Return what tells contents apart."""
    return blake2b(data, digest_size=20).hexdigest()
