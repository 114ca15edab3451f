"""Answer a message with a value that is at hand, whatever the streams are at."""

import pickle

from accel_lab.compute.execution.launch import Launch
from accel_lab.compute.wire.codec import Answer


def answer(launch: Launch, value: object) -> None:
    """Answer at once."""
    report = Answer(launch.seq, pickle.dumps(value), True, [])  # noqa: FBT003
    launch.finish = lambda: [report]
    launch.at_once = True
