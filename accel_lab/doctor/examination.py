"""The whole examination, in the order a reader wants it."""

from importlib.metadata import PackageNotFoundError, version

from accel_lab.doctor.machine import machine
from accel_lab.doctor.nvidia import nvidia, own_contexts
from accel_lab.doctor.packages import core_packages, cuda_packages, jupyter_packages
from accel_lab.doctor.report import Report
from accel_lab.doctor.webgpu import webgpu


def examine() -> Report:
    """Look at this machine; takes well under a second, on any thread, and changes nothing."""
    card = nvidia()
    findings = (
        *machine(),
        *core_packages(),
        *card.findings,
        *own_contexts(),
        *webgpu(),
        *cuda_packages(card.cuda_version),
        *jupyter_packages(),
    )
    return Report(
        version=own_version(),
        host=not any("host" in finding.blocks for finding in findings),
        cuda=not any("cuda" in finding.blocks for finding in findings),
        findings=findings,
    )


def own_version() -> str:
    """Return the version of accel_lab that is installed, if one is."""
    try:
        return version("accel-lab")
    except PackageNotFoundError:
        return "from its source folder"
