"""What wgpu lacks for other reasons than its table tells."""

from accel_lab.compute.message.support import REMEDY
from accel_lab.errors import UnsupportedDtype


def lacks(text: str) -> UnsupportedDtype:
    """Return the refusal of what WGSL does not have; the host has it, where the user says so."""
    return UnsupportedDtype(f"{text}; {REMEDY}")
