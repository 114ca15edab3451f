"""The machine under Python: kernel, cores, memory and its limits, compiler."""

import os
import platform
import re
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from accel_lab.doctor.cgroup import ControlGroup
from accel_lab.doctor.finding import HOST_AND_CUDA, Finding

ANSWER_S = 10.0
SHM = Path("/dev/shm")  # noqa: S108 - measured, never written


def machine() -> Iterator[Finding]:
    """Look at everything that is neither a Python package nor a GPU."""
    yield _ok("python", f"{platform.python_version()} at {sys.executable}")
    yield _kernel()
    yield _cores()
    yield _memory()
    yield _page_locked()
    yield _shared_memory()
    yield _compiler()


def size(count: float) -> str:
    """Write a number of bytes with a binary unit, as `1.5 GiB`."""
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    power = min((int(count).bit_length() - 1) // 10, len(units) - 1) if count else 0
    return f"{count / 1024**power:.4g} {units[power]}"


def _ok(name: str, found: str, size_bytes: int | None = None) -> Finding:
    return Finding(topic="machine", name=name, state="ok", found=found, size_bytes=size_bytes)


def _kernel() -> Finding:
    found = f"{platform.system()} {platform.release()}, {platform.machine()}"
    if reason := _lacks_descriptors():
        return Finding(
            topic="machine",
            name="kernel",
            state="missing",
            found=f"{found}: {reason}",
            disables="everything: a context process is watched and fed through memfd and pidfd, "
            "which Linux 5.3 and later offer unless a sandbox forbids them",
            blocks=HOST_AND_CUDA,
        )
    return _ok("kernel", found)


def _lacks_descriptors() -> str | None:
    if sys.platform != "linux":
        return "not Linux"
    try:
        os.close(os.memfd_create("accel_lab-doctor"))
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return f"memfd or pidfd refused: {error.strerror}"
    return None


def _cores() -> Finding:
    usable = len(os.sched_getaffinity(0))
    found = f"{usable} of {os.cpu_count()}"
    granted = ControlGroup().cores()
    if granted is not None and granted < usable:
        return Finding(
            topic="machine",
            name="cores",
            state="limited",
            found=f"{found}, of which the control group grants {granted:.2g}",
            disables="more work at once: what is beyond that share waits, in all of the group",
        )
    return _ok("cores", found)


def _memory() -> Finding:
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = ControlGroup().memory_bytes()
    if limit is not None and limit < installed:
        found = f"{size(limit)} for the control group; the machine has {size(installed)}"
        return _ok("memory", found, limit)
    return _ok("memory", size(installed), installed)


def _page_locked() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY:
        return _ok("page-locked limit", "unlimited")
    return _ok("page-locked limit", f"{size(soft)} for mlock; CUDA's locking is not counted", soft)


def _shared_memory() -> Finding:
    if not SHM.is_dir():
        return Finding(
            topic="machine",
            name="shared memory",
            state="limited",
            found=f"no {SHM}",
            disables="what of other libraries needs it; accel_lab's arrays have no name there",
        )
    stat = os.statvfs(SHM)
    total, free = stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize
    found = f"{size(total)} in {SHM}, {size(free)} free; accel_lab's arrays do not use it"
    return _ok("shared memory", found, total)


def _compiler() -> Finding:
    try:
        named = shlex.split(os.environ.get("CXX", ""))[:1]
    except ValueError as error:
        return _no_compiler(f"CXX holds no command: {error}")
    for name in named or ("c++", "g++", "clang++"):
        if found := _compiler_version(name):
            return _ok("compiler", found)
    if named:
        there = "does not answer" if shutil.which(named[0]) else "is not there"
        return _no_compiler(f"{named[0]}, which CXX names, {there}")
    return _no_compiler("no c++, g++ or clang++")


def _no_compiler(found: str) -> Finding:
    return Finding(
        topic="machine",
        name="compiler",
        state="limited",
        found=found,
        disables="jit on the host backend: CUDA C++ without a GPU is compiled by it",
        command="sudo apt-get install g++" if shutil.which("apt-get") else "",
    )


def _compiler_version(name: str) -> str | None:
    if (path := shutil.which(name)) is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - a name found on the path
            [path, "--version"], capture_output=True, check=False, timeout=ANSWER_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"\d+(\.\d+)+", done.stdout.decode(errors="replace"))
    return f"{name} {version[0]}" if version else f"{name} of unknown version"
