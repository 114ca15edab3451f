"""What this machine has, what is missing, what that disables, and the command that fixes it.

Nothing here imports a CUDA package: versions come from installed metadata, GPUs from NVML.
"""

from accel_lab.doctor.examination import examine
from accel_lab.doctor.finding import Backend, Finding, State, Topic
from accel_lab.doctor.report import Report

__all__ = ["Backend", "Finding", "Report", "State", "Topic", "examine"]
