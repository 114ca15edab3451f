"""The tutorials and skills that come with accel_lab, and a copy of them that the user owns."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

PACKAGE = Path(__file__).parent
FIRST = "00-first-minute.ipynb"


class Copy(NamedTuple):
    """What became of one file: `copied`, already `same`, or `kept` because the user changed it."""

    path: Path
    outcome: Literal["copied", "same", "kept"]


def packaged() -> Path:
    """Give the folder of the tutorials: inside an installed package, or beside its source."""
    inside = PACKAGE / "_notebooks"
    return inside if inside.is_dir() else PACKAGE.parent / "notebooks"


def packaged_skills() -> Path:
    """Give the folder of the skills for coding assistants, in the same two places."""
    inside = PACKAGE / "_skills"
    return inside if inside.is_dir() else PACKAGE.parent / "docs" / "skills"


def copy(target: Path, source: Path | None = None) -> list[Copy]:
    """Copy all of `source`, or every tutorial, into `target`; a file that is there stays as it is.

    Raises:
        OSError: `target` is no folder, or cannot be written.
    """
    return list(_copy(target, packaged() if source is None else source))


def _copy(target: Path, source: Path) -> Iterator[Copy]:
    target.mkdir(parents=True, exist_ok=True)
    for original in sorted(path for path in source.rglob("*") if path.is_file()):
        relative = original.relative_to(source)
        if any(part.startswith(".") for part in relative.parts):
            continue
        path = target / relative
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(original, path)
            yield Copy(path, "copied")
        elif path.read_bytes() == original.read_bytes():
            yield Copy(path, "same")
        else:
            yield Copy(path, "kept")
