"""Virtual environments that hold little, made in well under a second from this one's packages."""

import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.project import ROOT


class BarePython:
    """A fresh virtual environment without pip; `python` is its interpreter."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        self.python = folder / "bin" / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.site_packages = folder / "lib" / version / "site-packages"

    def link(self, requirements: Iterable[str]) -> None:
        """Make these distributions importable, with all they need, and no others."""
        for name in _closure(requirements):
            found = distribution(name)
            for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
                target = self.site_packages / top
                if not target.exists():
                    target.symlink_to(str(found.locate_file(top)))

    def see(self, *folders: Path) -> None:
        """Make what lies in these folders importable."""
        (self.site_packages / "see.pth").write_text("".join(f"{path}\n" for path in folders))

    def see_all_but_the_checkout(self) -> None:
        """Make everything importable that this process can import, except accel_lab."""
        self.see(*(Path(path) for path in sys.path if path and Path(path) != ROOT))

    def run(self, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run the interpreter with nothing inherited that could lead back to the checkout."""
        environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
        return subprocess.run(
            [self.python, *arguments],
            cwd=cwd,
            env=environment | {"COLUMNS": "100", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )


def _closure(requirements: Iterable[str]) -> set[str]:
    """Name these distributions and everything they need here."""
    wanted: set[str] = set()
    open_ = [Requirement(line) for line in requirements]
    while open_:
        one = open_.pop()
        name = canonicalize_name(one.name)
        applies = one.marker is None or one.marker.evaluate({"extra": ""})
        if applies and name not in wanted:
            wanted.add(name)
            open_ += [Requirement(line) for line in distribution(name).requires or ()]
    return wanted
