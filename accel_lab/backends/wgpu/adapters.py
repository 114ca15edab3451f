"""Which adapters there are, told by a process of its own: the notebook's opens none."""

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from accel_lab.errors import InvalidArgument

ASK_S = 60.0
ALIGNMENT = 256
"""What the place of a binding is a multiple of, on every adapter; so is each element's size."""
BINDING_BYTES = "ACCEL_LAB_WGPU_BINDING_BYTES"
"""The variable that lowers how much a binding has, so that small arrays are computed in parts."""
NATIVE = ("Vulkan", "Metal", "D3D12")
"""What an adapter is reached by; OpenGL's have no float64 and no buffers of this size."""
LEAST_BOUND = 1024
_F64, _INT64 = "shader-f64", "shader-int64"
NEEDS = {"float64": (_F64, _INT64), "int64": (_INT64,), "uint64": (_INT64,)}
"""The features without which an adapter lacks a dtype; float64's bits are an integer's."""
_RANKS = {"DiscreteGPU": 0, "IntegratedGPU": 1, "CPU": 3}
_HARDWARE = ("/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/dxg")


class Adapter(NamedTuple):
    """An adapter, as far as it tells.

    Attributes:
        name: what it is called.
        kind: `DiscreteGPU`, `IntegratedGPU`, `CPU`, or another word of WebGPU's.
        api: what it is reached by, as `Vulkan`.
        driver: the driver's own text.
        features, limits: WebGPU's, by its names.
    """

    name: str
    kind: str
    api: str
    driver: str
    features: tuple[str, ...]
    limits: dict[str, int]


def found() -> list[Any]:
    """Return WebGPU's adapters that serve, the processor's own last; it opens the drivers.

    OpenGL is not opened: without a display its drivers complain.
    """
    import wgpu
    from wgpu.backends.wgpu_native.extras import set_instance_extras

    set_instance_extras(backends=["Vulkan", "Metal", "DX12"])
    return ordered(wgpu.gpu.enumerate_adapters_sync())


def ordered(found: Iterable[Any]) -> list[Any]:
    """Return those of WebGPU's adapters that serve, the processor's own last."""
    served = [one for one in found if one.info["backend_type"] in NATIVE]
    return sorted(served, key=lambda one: _RANKS.get(one.info["adapter_type"], 2))


def describe(adapter: Any) -> Adapter:
    """Return what one of WebGPU's adapters tells of itself."""
    info = adapter.info
    return Adapter(
        info["device"],
        info["adapter_type"],
        info["backend_type"],
        info["description"],
        tuple(sorted(adapter.features)),
        dict(adapter.limits),
    )


def most_bound(limits: Mapping[str, int]) -> int:
    """Return how many bytes a binding of an adapter with these limits has at most here.

    Raises:
        InvalidArgument: the variable that lowers it is no such number.
    """
    bound = min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"])
    asked = os.environ.get(BINDING_BYTES) or str(bound)
    if not asked.isdecimal() or int(asked) < LEAST_BOUND:
        text = f"{BINDING_BYTES} is a number of bytes from {LEAST_BOUND} on, not {asked!r}"
        raise InvalidArgument(text)
    return min(bound, int(asked)) // ALIGNMENT * ALIGNMENT


def lacking(features: Collection[str]) -> frozenset[str]:
    """Return the dtypes that an adapter of these features does not compute in."""
    return frozenset(name for name, needed in NEEDS.items() if not {*needed} <= {*features})


@cache
def adapters() -> tuple[Adapter, ...]:
    """Ask for the adapters, once; some seconds. There are none where wgpu is not installed."""
    if find_spec("wgpu") is None:
        return ()
    command = [sys.executable, "-c", f"from {__name__} import tell; tell()"]
    try:
        done = subprocess.run(  # noqa: S603 - Python itself
            command, capture_output=True, text=True, timeout=ASK_S, check=True
        )
        found = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return ()
    return tuple(Adapter(**{**one, "features": tuple(one["features"])}) for one in found)


def may_have_hardware() -> bool:
    """Whether there may be an adapter that is no processor; asks for none."""
    root = Path("/")
    if not sys.platform.startswith("linux"):
        return True
    return any(any(root.glob(pattern.lstrip("/"))) for pattern in _HARDWARE)


def tell() -> None:
    """Print the adapters."""
    sys.stdout.write(json.dumps([describe(one)._asdict() for one in found()]))
    sys.stdout.write("\n")
