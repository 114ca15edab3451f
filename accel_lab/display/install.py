"""The command that installs a part of accel_lab into the Python that runs now."""

import json
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit


def pip_install(extra: str = "") -> str:
    """Give the shell command that installs accel_lab's own needs, or those of an extra.

    One that runs from its source folder, or was installed from a folder that is still there, is
    installed from there: by its name alone pip would look for it in an index. Else it is named, and
    its own metadata say what is missing.
    """
    wanted = f"[{extra}]" if extra else ""
    source = _checkout()
    if source is not None:
        return pip_command(f"install -e {shlex.quote(f'{source}{wanted}')}")
    source = _installed_from()
    if source is not None:
        return pip_command(f"install {shlex.quote(f'{source}{wanted}')}")
    return pip_command(f'install "accel-lab{wanted}"' if wanted else "install accel-lab")


def source_folder() -> Path | None:
    """Return the folder from which accel_lab is installed here; None where an index has it."""
    return _checkout() or _installed_from()


def _checkout() -> Path | None:
    """Return the source folder that accel_lab runs from; None where that is none."""
    folder = Path(__file__).parents[2]
    return folder if (folder / "pyproject.toml").is_file() else None


def _installed_from() -> Path | None:
    """Return the folder that accel_lab was installed from, as pip has noted; None without one."""
    try:
        noted = distribution("accel-lab").read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    url = urlsplit(json.loads(noted)["url"]) if noted else None
    if url is None or url.scheme != "file":
        return None
    folder = Path(unquote(url.path))
    return folder if (folder / "pyproject.toml").is_file() else None


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
