"""A supervised GPU workbench for notebooks.

`System` opens devices; `blas.gemm(a, b)` sends a typed message to the device that holds `a`;
what comes back is a handle that is an operand at once. A fault on the device costs its buffers,
never the notebook. `gpu` is the first device of a system that opens itself when it is first asked
for; `from accel_lab import gpu` asks.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from accel_lab import open_systems
from accel_lab.library_modules import LIBRARIES, module_of

if TYPE_CHECKING:
    from accel_lab import actor as actor
    from accel_lab import array_api as array_api
    from accel_lab import errors as errors
    from accel_lab import onnx as onnx
    from accel_lab import pipeline as pipeline
    from accel_lab import raw as raw
    from accel_lab import telemetry as telemetry
    from accel_lab import views as views
    from accel_lab.compute import streams as streams
    from accel_lab.compute.device import Device as Device
    from accel_lab.compute.events import lifecycle as events
    from accel_lab.compute.message.buffer import AccelRef as AccelRef
    from accel_lab.compute.message.handle import Handle as Handle
    from accel_lab.default import default_system as default_system
    from accel_lab.extension import load_ipython_extension as load_ipython_extension
    from accel_lab.extension import unload_ipython_extension as unload_ipython_extension
    from accel_lab.journal.journal import Journal as Journal
    from accel_lab.journal.replay.replay import Replay as Replay
    from accel_lab.libraries import array as array
    from accel_lab.libraries import attention as attention
    from accel_lab.libraries import blas as blas
    from accel_lab.libraries import blas_lt as blas_lt
    from accel_lab.libraries import collective as collective
    from accel_lab.libraries import dnn as dnn
    from accel_lab.libraries import event as event
    from accel_lab.libraries import fft as fft
    from accel_lab.libraries import graph as graph
    from accel_lab.libraries import jit as jit
    from accel_lab.libraries import module as module
    from accel_lab.libraries import primitives as primitives
    from accel_lab.libraries import rng as rng
    from accel_lab.libraries import solver as solver
    from accel_lab.libraries import sparse as sparse
    from accel_lab.libraries import tensor as tensor
    from accel_lab.libraries import tensorrt as tensorrt
    from accel_lab.session.opening import open as open  # noqa: A004 - as of files
    from accel_lab.session.session import Session as Session
    from accel_lab.system import System as System

__all__ = [
    "AccelRef",
    "Device",
    "Handle",
    "Journal",
    "Replay",
    "Session",
    "System",
    "actor",
    "array_api",
    "default_system",
    "errors",
    "events",
    "gpu",
    "onnx",
    "open",
    "pipeline",
    "raw",
    "streams",
    "telemetry",
    "views",
]
__all__ += list(LIBRARIES)

gpu: "Device"
"""The device of `default_system()`, opened when this name is first asked for."""

# Where to find a name when it is first asked for: a context imports this package, and needs few.
_HOMES = {
    "AccelRef": "accel_lab.compute.message.buffer",
    "Device": "accel_lab.compute.device",
    "Handle": "accel_lab.compute.message.handle",
    "Journal": "accel_lab.journal.journal",
    "Replay": "accel_lab.journal.replay.replay",
    "Session": "accel_lab.session.session",
    "System": "accel_lab.system",
    "actor": "accel_lab.actor",
    "array_api": "accel_lab.array_api",
    "default_system": "accel_lab.default",
    "errors": "accel_lab.errors",
    "events": "accel_lab.compute.events.lifecycle",
    "load_ipython_extension": "accel_lab.extension",
    "unload_ipython_extension": "accel_lab.extension",
    "onnx": "accel_lab.onnx",
    "open": "accel_lab.session.opening",
    "pipeline": "accel_lab.pipeline",
    "raw": "accel_lab.raw",
    "streams": "accel_lab.compute.streams",
    "telemetry": "accel_lab.telemetry",
    "views": "accel_lab.views",
}


def _offer(_: object) -> None:
    """Have dashboards and JupyterLab's sidebar find this process's systems, also without a view.

    And have systems know what `accel_lab.telemetry` gives them.
    """
    # Each adds a hook of its own, which is called, too.
    importlib.import_module("accel_lab.views.feed.feed")
    importlib.import_module("accel_lab.telemetry")
    kernel = sys.modules.get("ipykernel.kernelbase")
    if kernel is not None and kernel.Kernel.initialized():
        importlib.import_module("accel_lab.views.panels")


open_systems.opened.append(_offer)


def __dir__() -> list[str]:
    """Return what can be asked for, without `gpu`: who asks for each of these would open it."""
    return sorted({*__all__} - {"gpu"})


if not TYPE_CHECKING:  # else every name would be there for a type checker

    def __getattr__(name: str) -> Any:
        """Import a name when it is first asked for; `gpu` is looked up each time (PEP 562)."""
        if name == "gpu":
            return importlib.import_module("accel_lab.default").default_system().devices[0]
        if name in LIBRARIES:
            value = globals()[name] = module_of(name)
            return value
        home = _HOMES.get(name)
        if home is None:
            text = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(text)
        module = importlib.import_module(home)
        value = globals()[name] = module if f".{name}." in f"{home}." else getattr(module, name)
        return value
