"""What can be wrong with a far machine is told where the system is opened, with what to do."""

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from accel_lab import System
from accel_lab.compute.cluster.greeting import greeting
from accel_lab.compute.cluster.ssh.target import target
from accel_lab.errors import BackendUnavailable, InvalidArgument
from tests import ports
from tests.compute.cluster.ssh.far_host import HERE, FarHost, python

LIMIT_S = 20.0
OURS = f"{sys.version_info.major}.{sys.version_info.minor}"


def refused(host: FarHost, **given: Any) -> str:
    """Return why a system is refused, which is soon."""
    begun = time.monotonic()
    with pytest.raises(BackendUnavailable) as caught:
        System(**{"backend": host.url, "python": HERE, "ssh": host.ssh, **given})
    assert time.monotonic() - begun < LIMIT_S
    return str(caught.value)


def advised(text: str) -> str:
    """Return the command that a text says to type."""
    found = re.search("`(.*)`", text)
    assert found is not None
    return found[1]


def test_a_host_that_does_not_answer(host: FarHost) -> None:
    why = refused(host, backend=host.at(ports.free_port()))
    assert "Connection refused" in why
    assert "without a password" in why


def test_a_host_that_nobody_knows(host: FarHost) -> None:
    assert "resolve hostname" in refused(host, backend="ssh://accel-lab.invalid")


def test_a_key_that_is_refused(host: FarHost) -> None:
    why = refused(host, ssh=host.refused)
    assert "Permission denied" in why
    place = host.url.removeprefix("ssh://").rpartition(":")[0]
    assert advised(why).startswith(f"ssh-copy-id -p {host.port} {place}")


def test_a_host_whose_key_is_unknown(host: FarHost, tmp_path: Path) -> None:
    ssh = [*host.ssh[:-1], f"UserKnownHostsFile={tmp_path / 'none'}"]
    why = refused(host, ssh=ssh)
    assert "Host key verification failed" in why
    asked = subprocess.run(
        shlex.split(advised(why)), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert b"verification failed" in asked.stderr  # nobody is there who says yes


def test_the_command_that_is_advised_gets_there(host: FarHost) -> None:
    typed = target(host.url, None, host.ssh).typed("echo there")
    done = subprocess.run(shlex.split(typed), capture_output=True, check=True)
    assert done.stdout == b"there\n"


def test_a_python_that_is_not_there(host: FarHost) -> None:
    why = refused(host, python="/none/python")
    assert "'/none/python' is no program" in why
    assert f"version {OURS}" in why


def test_a_python_that_does_not_run(host: FarHost, tmp_path: Path) -> None:
    broken = python(tmp_path, "broken", "exit 1")
    assert f"{broken} does not run" in refused(host, python=broken)


def test_another_version_of_python(host: FarHost, tmp_path: Path) -> None:
    other = python(tmp_path, "other", "exit 6")
    why = refused(host, python=other)
    assert f"{other} is not of version {OURS}" in why
    assert "python=" in why


def test_a_python_without_accel_lab(host: FarHost, tmp_path: Path) -> None:
    bare = python(tmp_path, "bare", f'exec env -u PYTHONPATH {HERE} -S "$@"')
    why = refused(host, python=bare)
    assert f"no accel_lab for {bare}" in why
    command = advised(why)
    assert f"{bare} -m pip install" in command
    assert subprocess.run(["/bin/sh", "-n", "-c", command], check=False).returncode == 0


def test_another_version_of_accel_lab(host: FarHost, tmp_path: Path) -> None:
    line = f'accel_lab far side {{"python":"{OURS}","accel_lab":"0.0.1","program":"/p"}}'
    other = python(tmp_path, "older", f"[ \"$1\" = -c ] || {{ echo hello; echo '{line}'; }}")
    why = refused(host, python=other)
    assert "has accel_lab 0.0.1 on Python" in why
    assert "/p -m pip install" in advised(why)


def test_a_far_side_that_does_not_begin(host: FarHost, tmp_path: Path) -> None:
    ours = greeting()
    line = json.dumps({"python": ours.python, "accel_lab": ours.accel_lab, "program": HERE})
    script = f"[ \"$1\" = -c ] || {{ echo 'accel_lab far side {line}'; echo oops >&2; }}"
    why = refused(host, python=python(tmp_path, "brief", script))
    assert "does not start on" in why
    assert ": oops; see whether" in why
    assert subprocess.run(shlex.split(advised(why)), check=False).returncode == 0


def test_a_far_side_that_says_nothing_of_use(host: FarHost, tmp_path: Path) -> None:
    noisy = python(tmp_path, "noisy", '[ "$1" = -c ] || head -c 100000 /dev/zero')
    assert "no line of ours" in refused(host, python=noisy)


def test_no_ssh_here(host: FarHost) -> None:
    assert "install OpenSSH's client" in refused(host, ssh="/none/ssh")


def test_a_backend_that_cannot_run_there(host: FarHost) -> None:
    why = refused(host, backend="cuda", cluster=host.url)
    assert "the cuda backend cannot run here" in why
    assert "@127.0.0.1: " in why


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"backend": "ssh://"}, "names no machine"),
        ({"backend": "ssh://-oProxyCommand=x"}, "names no machine"),
        ({"backend": "ssh://host/folder"}, "names no machine"),
        ({"backend": "ssh://host:70000"}, "names no machine"),
        ({"backend": "ssh://host", "cluster": "ray"}, "says where the devices are"),
        ({"backend": "ssh://host", "python": "-c"}, "python is the path"),
        ({"backend": "ssh://host", "ssh": ()}, "not empty"),
        ({"backend": "ssh://host", "grace_s": -1}, "grace_s is a number of seconds"),
        ({"backend": "ssh://host", "suspend_after_s": 1.0}, "another machine"),
        ({"backend": "host", "grace_s": 5}, "are for System"),
    ],
    ids=str,
)
def test_mistakes_are_told_at_the_call(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        System(**given)


def test_devices_that_are_not_there(host: FarHost) -> None:
    with pytest.raises(InvalidArgument, match="host has 64"):
        System("host", [99], cluster=host.url, python=HERE, ssh=host.ssh)
