"""Which program runs Python: where it is embedded, `sys.executable` is empty or another one."""

import sys
from pathlib import Path

from accel_lab.errors import BackendUnavailable


def interpreter() -> str:
    """Return the path of the interpreter that has this process's packages.

    What `multiprocessing.set_executable` was given comes first, for it answers the same question.

    Raises:
        BackendUnavailable: there is none.
    """
    spawn = sys.modules.get("multiprocessing.spawn")
    chosen = None if spawn is None else spawn.get_executable()
    chosen = chosen.decode() if isinstance(chosen, bytes) else chosen
    if chosen and chosen != sys.executable:
        return str(chosen)
    own = Path(sys.executable or "")
    if own.name.startswith(("python", "pypy")) and own.is_file():
        return sys.executable
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix):
        for name in (f"python{version}", "python3", "python"):
            found = Path(prefix) / "bin" / name
            if found.is_file():
                return str(found)
    if own.name and own.is_file():
        return sys.executable  # of whatever name
    raise BackendUnavailable(
        f"no Python interpreter is in {sys.prefix}, and sys.executable is {sys.executable!r}: name "
        "one by multiprocessing.set_executable(path) before you open a System"
    )
