"""What the figures were measured on."""

import os
import platform
from collections.abc import Iterable
from pathlib import Path

import msgspec

from accel_lab.bench.peer import Peer
from accel_lab.doctor import examine
from accel_lab.doctor.finding import Finding


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The versions and the hardware behind a report.

    Attributes:
        accel_lab: our own version.
        python, system, cpu: as they name themselves.
        cores: how many this process may use.
        device: the model that computed.
        driver: the NVIDIA driver; empty where there is none.
        libraries: version by name, of every package found, and of what only a context can tell.
    """

    accel_lab: str
    python: str
    system: str
    cpu: str
    cores: int
    device: str
    driver: str
    libraries: dict[str, str]


def machine(peer: Peer, device: str) -> Machine:
    """Describe this machine; blocks for well under a second and a round trip."""
    report = examine()
    found = [finding for finding in report.findings if finding.state == "ok"]
    return Machine(
        accel_lab=report.version,
        python=platform.python_version(),
        system=platform.platform(),
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)),
        device=device,
        driver=next((f.found for f in found if f.name == "driver"), ""),
        libraries=dict(_versions(found)) | peer("device.versions"),
    )


def _versions(found: Iterable[Finding]) -> Iterable[tuple[str, str]]:
    topics = {"core", "cuda", "jupyter"}
    return ((finding.name, finding.found) for finding in found if finding.topic in topics)


def _cpu() -> str:
    """Return the processor's model, as the kernel tells it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, model = line.partition(":")
        if name.strip() == "model name":
            return model.strip()
    return platform.machine()
