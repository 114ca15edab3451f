"""A far machine that is this one: an sshd of the test's own, and a relay that delays and cuts."""

import asyncio
import getpass
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests import ports
from tests.project import ROOT

LIMIT_S = 20.0
MARK = "ACCEL_LAB_TEST_HOST"


def sshd() -> str | None:
    """Return the path of sshd, which has to be absolute."""
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class FarHost:
    """An sshd on the loopback address, with keys of its own, that lets this user in.

    Attributes:
        url: names it, without anything in between.
        ssh: the program and options that reach it; `refused` has a key that it does not know.
    """

    def __init__(self, folder: Path) -> None:
        program = sshd()
        assert program is not None
        self._mark = secrets.token_hex(8)
        for name in ("host", "known", "unknown"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        shutil.copy(folder / "known.pub", folder / "authorized")
        self.port = ports.free_port()
        own = folder / "tmp"
        own.mkdir()
        there = {
            "PYTHONPATH": ROOT,
            "OPENBLAS_NUM_THREADS": 1,
            "TMPDIR": own,
            MARK: self._mark,
        }
        lines = {
            "Port": self.port,
            "ListenAddress": "127.0.0.1",
            "HostKey": folder / "host",
            "AuthorizedKeysFile": folder / "authorized",
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "yes",
            "MaxStartups": "100",
            "SetEnv": " ".join(f"{name}={value}" for name, value in there.items()),
        }
        config = folder / "config"
        config.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        key = " ".join((folder / "host.pub").read_text().split()[:2])
        (folder / "hosts").write_text(f"accel-lab-test {key}\n")
        options = (
            *("-F", "/dev/null", "-o", "IdentitiesOnly=yes", "-o", "HostKeyAlias=accel-lab-test"),
            *("-o", f"UserKnownHostsFile={folder / 'hosts'}"),
        )
        self.ssh = ["ssh", "-i", str(folder / "known"), *options]
        self.refused = ["ssh", "-i", str(folder / "unknown"), *options]
        self.url = self.at(self.port)
        if not os.geteuid():
            Path("/run/sshd").mkdir(exist_ok=True)  # it asks for that as root
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [program, "-D", "-e", "-f", str(config)], stderr=self._log, stdin=subprocess.DEVNULL
        )
        self._wait()

    def at(self, port: int) -> str:
        """Return what names it, through another port."""
        return f"ssh://{getpass.getuser()}@127.0.0.1:{port}"

    def processes(self) -> list[int]:
        """Return the processes that were started there, those that have ended left out."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                variables = (folder / "environ").read_bytes()
                if f"{MARK}={self._mark}".encode() in variables.split(b"\0"):
                    found.append(int(folder.name))
        return found

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()
        self._log.close()

    def _wait(self) -> None:
        import socket

        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                return
            time.sleep(0.02)
        raise TimeoutError("sshd does not listen")


class Between:
    """A relay of TCP that takes `delay_s` each way, and cuts what it carries.

    Parameters:
        rate: the bytes a second that it carries each way at most.

    Attributes:
        is_open: whether it lets new connections through.
        opened: how many it has let through.
    """

    def __init__(self, to: int, delay_s: float = 0.0, rate: float = float("inf")) -> None:
        self.delay_s, self.rate = delay_s, rate
        self.is_open = True
        self.opened = 0
        self.port = ports.free_port()
        self._to = to
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="between")
        self._thread.start()
        self._ready.wait()

    def cut(self) -> None:
        """Reset every connection."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(LIMIT_S)

    def close(self) -> None:
        """Cut, and listen no more."""
        self.is_open = False
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._carry, "127.0.0.1", self.port)
        )
        self._ready.set()
        self._loop.run_forever()
        server.close()
        rest = asyncio.all_tasks(self._loop)
        for one in rest:
            one.cancel()
        self._loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))

    async def _cut(self) -> None:
        for one in list(self._writers):
            one.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.transport.abort()
            return
        self.opened += 1
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, far_writer}
        try:
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        finally:
            self._writers -= {writer, far_writer}
            for one in (writer, far_writer):
                one.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Write what is read, a while later."""
        due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(1024)

        async def read() -> None:
            data, free = b"any", 0.0
            while data:
                try:
                    data = await reader.read(1 << 16)
                except OSError:
                    data = b""
                free = max(free, self._loop.time()) + len(data) / self.rate
                await due.put((free + self.delay_s, data))

        reading = asyncio.ensure_future(read())
        try:
            while True:
                at, data = await due.get()
                await asyncio.sleep(max(0.0, at - self._loop.time()))
                if not data:
                    with suppress(OSError):
                        writer.write_eof()
                    return
                writer.write(data)
                await writer.drain()
        except OSError:
            return
        finally:
            reading.cancel()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def python(folder: Path, name: str, script: str) -> str:
    """Write a program that stands for a Python there; return its path."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


HERE = sys.executable
