"""Engines of TensorRT on the host: they are built and saved, and executed by cards alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accel_lab.backends.engine_builder import build
from accel_lab.libraries.tensorrt.messages import Build, EngineFacts


@dataclass(frozen=True, slots=True)
class HostPlan:
    """A built engine.

    Attributes:
        data: its plan.
        facts: what is known of it.
        nbytes: how much memory it takes.
    """

    data: bytes
    facts: EngineFacts
    nbytes: int


class HostTensorrt:
    """Has TensorRT build: that needs no card."""

    def __init__(self) -> None:
        self._engines = 0

    def build(self, m: Build, model: Any) -> HostPlan:
        """Build an engine; any thread.

        Raises:
            EngineError: it cannot be built, or TensorRT is missing.
            InvalidArgument: a profile does not fit to the model.
        """
        data, facts = build(m, model.tobytes())
        self._engines += 1
        return HostPlan(data, facts, len(data))

    def bytes_to(self, data: bytes, out: Any) -> None:
        """Write bytes to an array."""
        out[...] = np.frombuffer(data, np.uint8)

    def statistics(self) -> Mapping[str, int]:
        """Count engines."""
        return {"engines": self._engines}
