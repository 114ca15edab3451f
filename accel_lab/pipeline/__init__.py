"""Pipelines over devices: `Source → stage → sink`, bounded, in order, and restarted after faults.

A stage's function gets a device and an item, and returns handles, replies or plain values. What it
returns as handles stays on the device and is what the next stage's function gets.

Runs in the notebook's process.
"""

from accel_lab.pipeline.pipeline import Drain as Drain
from accel_lab.pipeline.pipeline import Pipeline as Pipeline
from accel_lab.pipeline.progress import Progress as Progress
from accel_lab.pipeline.progress import StageProgress as StageProgress
from accel_lab.pipeline.source import Source as Source
