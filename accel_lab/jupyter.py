"""JupyterLab, opened on a notebook."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

PRESETS = Path(__file__).parent / "presets"
"""A folder of Jupyter's settings: what a notebook with views needs that JupyterLab leaves off."""


def environment(given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of a JupyterLab that keeps the state of views with a notebook.

    Without it a view that is opened again after its kernel ended says "model not found". It is a
    default: what the user has set in JupyterLab wins.
    """
    paths = filter(None, (given.get("JUPYTER_CONFIG_PATH"), str(PRESETS)))
    return {**given, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)}


def command(
    folder: Path,
    notebook: str,
    arguments: Sequence[str] = (),
    *,
    browser: bool = True,
    environment: Mapping[str, str] = os.environ,
) -> list[str]:
    """Give the command that serves `folder` and shows `notebook` in it.

    It prints the notebook's URL. A browser opens only where there is a display, and not with
    `browser=False`; `arguments` go to JupyterLab as they are and win over ours.
    """
    display = any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={folder.resolve()}",
        f"--LabApp.default_url=/lab/tree/{notebook}",
        *([] if browser and display else ["--no-browser"]),
        # Jupyter refuses to run as root unless told; in a container there is often nobody else.
        *(["--allow-root"] if os.geteuid() == 0 else []),
        *arguments,
    ]
