"""Real servers, each of its own folder and port, for the tests that need one."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from tests.ports import free_port
from tests.with_parent import with_parent

LIMIT_S = 60.0


def postgres_folder() -> Path | None:
    """Return where PostgreSQL's programs are; Debian keeps them off the path."""
    found = [Path(path).parent for path in [shutil.which("initdb")] if path]
    found += [path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
    return found[-1] if found else None


class Server:
    """A process that listens on a port; it can be stopped and started again."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="accel_lab-server-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> Self:
        with (self.folder / "log").open("ab") as log:
            command = with_parent(*self.command())
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + LIMIT_S
        while not self.answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                self.stop()
                raise RuntimeError((self.folder / "log").read_text())
            threading.Event().wait(0.02)
        return self

    def answers(self) -> bool:
        raise NotImplementedError

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Postgres(Server):
    """PostgreSQL, which refuses to be root, so it runs as `postgres` or `nobody` then."""

    def __init__(self) -> None:
        super().__init__()
        folder = postgres_folder()
        assert folder is not None
        self._programs = folder
        self._user: list[str] = []
        if os.geteuid() == 0:
            user = _first_user("postgres", "nobody")
            self._user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}"]
            self._user += [
                "--clear-groups",
                "--pdeathsig=TERM",
            ]  # another user is told of nothing else
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        done = subprocess.run(
            [
                *self._user,
                str(folder / "initdb"),
                f"--pgdata={self.folder}/data",
                *("--username=accel", "--auth=trust", "--encoding=UTF8", "--no-sync"),
                "--no-locale",
            ],
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def command(self) -> list[str]:
        return [
            *self._user,
            str(self._programs / "postgres"),
            *("-D", f"{self.folder}/data", "-p", str(self.port), "-k", str(self.folder)),
            *("-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=16MB"),
        ]

    def answers(self) -> bool:
        command = [
            str(self._programs / "pg_isready"),
            "-q",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
        ]
        return subprocess.run(command, check=False).returncode == 0

    def stop(self) -> None:
        """Ask for the fast shutdown, which does not wait for clients."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(2)
            self._process.wait(LIMIT_S)
            self._process = None

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://accel@127.0.0.1:{self.port}/postgres"


class Redis(Server):
    """redis-server, which writes every command to its file before it answers."""

    def command(self) -> list[str]:
        program = shutil.which("redis-server") or shutil.which("valkey-server") or "redis-server"
        return [
            program,
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)),
            *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
        ]

    def answers(self) -> bool:
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.settimeout(1.0)
            probe.connect(("127.0.0.1", self.port))
            probe.sendall(b"PING\r\n")
            return probe.recv(16).startswith(b"+PONG")
        return False

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"


class Listener(Server):
    """A server that answers whoever connects."""

    def answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
            return True
        return False


class Moto(Listener):
    """moto's server, which acts as DynamoDB does, and keeps everything in memory."""

    def command(self) -> list[str]:
        return [sys.executable, "-W", "ignore", "-m", "moto.server", "-p", str(self.port)]

    def url(self, name: str) -> str:
        return f"dynamodb://eu-west-1/{name}?endpoint=http://127.0.0.1:{self.port}"


class Dynalite(Listener):
    """npm's dynalite, which keeps what DynamoDB would in a folder."""

    def command(self) -> list[str]:
        return [
            dynalite() or "dynalite",
            *("--port", str(self.port), "--path", str(self.folder / "data")),
            *("--createTableMs", "0"),
        ]

    def url(self, name: str) -> str:
        return f"dynamodb://eu-west-1/{name}?endpoint=http://127.0.0.1:{self.port}"


class Mongo(Listener):
    """nx-27017, which speaks MongoDB's protocol and keeps its documents in SQLite files."""

    def command(self) -> list[str]:
        (self.folder / "data").mkdir(exist_ok=True)
        return [
            str(Path(sys.executable).with_name("nx-27017")),
            *("--data-dir", str(self.folder / "data"), "-p", str(self.port)),
            *("--log-file", str(self.folder / "nx.log"), "--pid-file", str(self.folder / "pid")),
        ]

    def url(self, name: str) -> str:
        return f"mongodb://127.0.0.1:{self.port}/{name}"


class Elsewhere:
    """A server at an address that was given, as `cassandra://host:9042`."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


def dynalite() -> str | None:
    """Return the program, where npm has put it for all or where ACCEL_LAB_DYNALITE says."""
    return os.environ.get("ACCEL_LAB_DYNALITE") or shutil.which("dynalite")


@contextlib.contextmanager
def running(server: Server) -> Iterator[Server]:
    try:
        yield server.start()
    finally:
        server.remove()


def _first_user(*names: str) -> pwd.struct_passwd:
    for name in names:
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError(f"root needs one of these users to run PostgreSQL: {names}")
