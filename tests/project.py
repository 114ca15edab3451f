"""The project's own declarations, read once for the tests that compare them."""

import shutil
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "accel_lab"
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT: dict[str, Any] = PYPROJECT["project"]
NEXT = PYPROJECT["tool"]["hatch"]["version"]["raw-options"]["fallback_version"].removesuffix(
    ".dev0"
)
"""The version to come, or that of the tag."""
UNFINISHED = shutil.ignore_patterns("*.pyc.*")
"""Of a copy of the project that saves compiling it: what another process is writing just now."""


def requirements(extra: str = "") -> dict[str, str]:
    """Map each distribution that the core, or an extra, names to its bounds."""
    lines = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    return bounds(lines)


def bounds(lines: list[str]) -> dict[str, str]:
    """Map canonical names to their version specifiers."""
    parsed = [Requirement(line) for line in lines]
    return {canonicalize_name(one.name): str(one.specifier) for one in parsed}
