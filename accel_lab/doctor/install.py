"""The command that installs a part of accel_lab into the Python that runs now."""

import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path


def pip_install(extra: str = "") -> str:
    """Give the shell command that installs accel_lab's own needs, or those of an extra.

    An installed accel_lab is named, and its own metadata say what is missing; one that runs from
    its source folder is installed from there.
    """
    wanted = f"[{extra}]" if extra else ""
    try:
        distribution("accel-lab")
    except PackageNotFoundError:
        source = Path(__file__).parents[2]
        return pip_command(f"install -e {shlex.quote(f'{source}{wanted}')}")
    return pip_command(f'install "accel-lab{wanted}"' if wanted else "install accel-lab")


def pip_command(arguments: str) -> str:
    """Give the shell command that runs pip for the Python that runs now."""
    return f"{_installer()} {arguments}"


def _installer() -> str:
    """Name pip as a user types it, unless that would be the pip of another Python."""
    python = Path(sys.executable)
    if find_spec("pip") is None and shutil.which("uv"):
        return f"VIRTUAL_ENV={shlex.quote(sys.prefix)} uv pip"
    on_path = shutil.which("pip")
    if on_path and Path(on_path).parent == python.parent:
        return "pip"
    return f"{shlex.quote(str(python))} -m pip"
