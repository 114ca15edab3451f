"""Which machine is meant, the command that reaches it, and what to do when that fails."""

import re
import shlex
import sys
from collections.abc import Sequence
from typing import NamedTuple

from accel_lab.compute.cluster.greeting import greeting
from accel_lab.compute.cluster.ssh.greeting import MARK, Far
from accel_lab.display.install import source_folder
from accel_lab.errors import BackendUnavailable, InvalidArgument

SCHEME = "ssh://"
CONNECT_S = 10
LAST_PORT = 65535
_ALIVE_S = 5
_PLACE = re.compile(
    r"(?:(?P<user>[\w.][\w.@\\-]*)@)?(?P<host>[\w.][\w.-]*|\[[0-9A-Fa-f:.]+(?:%\w+)?\])"
    r"(?::(?P<port>\d{1,5}))?/?"
)
_PLACES = ("~/.venv", "~/venv", "~/miniforge3", "~/miniconda3", "~/anaconda3", "/opt/conda")
_OLDER, _WITHOUT, _OTHER = 4, 5, 6
_LOOK = (
    "import sys; sys.path.pop(0); v = sys.version_info; import importlib.util as u; "
    f"sys.exit({_OLDER} if v < (3, 11) else {_WITHOUT} if u.find_spec('accel_lab') is None else "
    "{other})"
)
"""Asks a Python what it lacks; it has no quotation marks of the other kind in it."""
_RUN = "-P -m accel_lab.far_side"
_FIND = (
    'for p in "$@"; do case $p in "~/"*) p=$HOME/${p#??};; esac; '
    'command -v "$p" >/dev/null 2>&1 || continue; '
    '"$p" -c "$LOOK" >/dev/null 2>&1; s=$?; '
    f'if [ $s = 0 ]; then exec "$p" {_RUN}; fi; '
    'found="$found$p=$s|"; done; '
    f"""printf '{MARK.decode()}{{"python":"","accel_lab":"","program":"%s"}}\\n' "$found\""""
)
"""Becomes the first Python that has what is needed, or says what each of them lacks."""


class Target(NamedTuple):
    """A machine, and how it is reached.

    Attributes:
        place: as ssh is given it, `user@host`.
        port: None for ssh's own.
        ssh: the program, and options of the user's for it.
        python: the interpreter there; None to look for one.
    """

    place: str
    port: int | None
    ssh: tuple[str, ...]
    python: str | None

    def command(self, program: str = "") -> list[str]:
        """Return the command that starts the far side; the program runs Python there, if known."""
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": CONNECT_S,
            "ServerAliveInterval": _ALIVE_S,
            "ServerAliveCountMax": 3,
            "ClearAllForwardings": "yes",
        }
        return [
            *(*self.ssh, "-T"),
            *(f"-o{name}={value}" for name, value in options.items()),
            *self._there,
            f"exec {shlex.quote(program)} {_RUN}" if program else _remote(self.python),
        ]

    def typed(self, command: str) -> str:
        """Return what a user types to have a command run there."""
        return shlex.join([*self.ssh, *self._there, command])

    @property
    def _there(self) -> list[str]:
        return [*(["-p", str(self.port)] if self.port is not None else []), "--", self.place]

    # What went wrong.

    def unreached(self, said: str, status: int | None) -> BackendUnavailable:
        """Say why ssh did not get there, from what it wrote last."""
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        why = lines[-1] if lines else f"ssh ended with {status}"
        if "Permission denied" in said:
            options = " ".join(shlex.quote(one) for one in self._there if one != "--")
            advice = f"give it your key by `ssh-copy-id {options}`, or load the key by `ssh-add`"
        elif "Host key verification failed" in said or "IDENTIFICATION HAS CHANGED" in said:
            advice = f"say whether it is that machine: `{self.typed('true')}` asks you"
        else:
            advice = f"`{self.typed('true')}` in a terminal has to work without a password"
        return BackendUnavailable(f"ssh does not reach {self.place}: {why}; {advice}")

    def broken(self, said: str, program: str) -> BackendUnavailable:
        """Say that the far side was there and did not begin."""
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        tried = self.typed(f"{shlex.quote(program)} -c 'import accel_lab.system'")
        return BackendUnavailable(
            f"accel_lab does not start on {self.place}: {lines[-1] if lines else said}; "
            f"see whether `{tried}` works"
        )

    def require(self, far: Far) -> None:
        """Refuse a far side that is another version than this one, or that is none.

        Raises:
            BackendUnavailable: it is.
        """
        if not far.python:
            raise self._unfound(far.program)
        self._require_same(far)

    def _unfound(self, tried: str) -> BackendUnavailable:
        """Say which Pythons there are there, and what each of them lacks."""
        pairs = [one.rpartition("=") for one in tried.split("|") if one]
        found = {path: int(status) for path, _, status in pairs}
        ours = f"{sys.version_info.major}.{sys.version_info.minor}"
        if not found:
            what = f"{self.python!r} is no program" if self.python else "no Python is"
            advice = f"name one of version {ours} by System(..., python=path)"
            return BackendUnavailable(f"{what} on {self.place}: {advice}")
        bare = [path for path, status in found.items() if status == _WITHOUT]
        if bare:
            return BackendUnavailable(
                f"{self.place} has no accel_lab for {' or '.join(bare)}: {self._install(bare[0])}; "
                "or name another Python by System(..., python=path)"
            )
        lacks = {_OLDER: "is older than 3.11", _OTHER: f"is not of version {ours}, as this one is"}
        told = (f"{path} {lacks.get(status, 'does not run')}" for path, status in found.items())
        return BackendUnavailable(
            f"no Python of {self.place} can be used: {', '.join(told)}; name one of version {ours} "
            "by System(..., python=path)"
        )

    def _require_same(self, far: Far) -> None:
        ours = greeting()
        if (far.python, far.accel_lab) != ours:
            program = far.program or "python3"
            advice = (
                self._install(program)
                if far.python == ours.python
                else f"name a Python {ours.python} by System(..., python=path)"
            )
            raise BackendUnavailable(
                f"{self.place} has accel_lab {far.accel_lab} on Python {far.python}, and this "
                f"process {ours.accel_lab} on Python {ours.python}: {advice}"
            )

    def _install(self, python: str) -> str:
        """Return the command that gives a Python there what runs here."""
        pip = f"{shlex.quote(python) if python[0] != '~' else python} -m pip install"
        source = source_folder()
        if source is None:
            return f"run `{self.typed(f'{pip} accel-lab=={greeting().accel_lab}')}`"
        unpack = f"mkdir -p accel_lab && tar -xzC accel_lab && {pip} ./accel_lab"
        return f"run `tar -czC {shlex.quote(str(source))} . | {self.typed(unpack)}`"


def target(url: str, python: str | None, ssh: str | Sequence[str]) -> Target:
    """Return the machine that is meant by `ssh://user@host:port`.

    Raises:
        InvalidArgument: it is none, or no program's name.
    """
    found = _PLACE.fullmatch(url.removeprefix(SCHEME))
    if found is None or int(found["port"] or 0) > LAST_PORT:
        raise InvalidArgument(f"{url!r} names no machine: write ssh://user@host or ssh://host:port")
    if python is not None and (not python or python[0] == "-"):
        raise InvalidArgument(f"python is the path of an interpreter there, not {python!r}")
    words = tuple(shlex.split(ssh) if isinstance(ssh, str) else map(str, ssh))
    if not words:
        raise InvalidArgument("ssh is a program and its options, as 'ssh -i key', and not empty")
    place = (f"{found['user']}@" if found["user"] else "") + found["host"].strip("[]")
    return Target(place, int(found["port"]) if found["port"] else None, words, python)


def _remote(python: str | None) -> str:
    """Return the command that the login shell there is given; each shell understands it."""
    major, minor = sys.version_info[:2]
    names = (f"python{major}.{minor}", "python3", "python")
    among = [*names, *(f"{place}/bin/python" for place in _PLACES)] if python is None else [python]
    other = f"0 if v[:2] == ({major}, {minor}) else {_OTHER}"
    script = f"LOOK={shlex.quote(_LOOK.format(other=other))}; {_FIND}"
    return f"exec {shlex.join(['sh', '-c', script, 'sh', *among])}"
