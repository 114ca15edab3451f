"""All checks, one after another."""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from accel_lab.compute.message.validation import require_word
from accel_lab.doctor.examination import own_version
from accel_lab.gpu_test.messages import MESSAGES, Operands
from accel_lab.gpu_test.outcome import Outcome, State, Wrong
from accel_lab.gpu_test.report import Report
from accel_lab.gpu_test.together import ALL_REDUCE, DEVICES, all_reduce, replay
from accel_lab.system import System

SAID = 200
"""Characters of an error that a row has room for."""
PACKAGES = {"cutlass": "cutlass_library"}
"""What a library needs beside CUDA on a card; without it nothing of the library is tried."""
UNTRIED = frozenset({"tensorrt"})
"""Not tried: it needs a package of its own, and an engine that cards of some kinds do not load."""


def run(
    backend: str = "cuda",
    *,
    devices: int | None = None,
    began: Callable[[str], object] = lambda _: None,
) -> Report:
    """Try everything on each device; blocks for a minute or two, longer where caches are empty.

    Parameters:
        backend: `cuda`, or `host` to try the checks themselves.
        devices: how many; all of them when not given.
        began: called with the name of what begins.

    Raises:
        InvalidArgument: it is another backend; what may fall back to `host` would test no GPU.
        AccelError: the backend cannot run here, or a device does not start.
    """
    require_word(backend, "backend", ("cuda", "host"))
    with System(backend, devices, max_restarts=10) as lab:
        models = {one.name: one.detail for one in lab.tree().children if one.kind == "device"}
        support = import_module(f"accel_lab.backends.{lab.backend}.support").SUPPORT
        return Report(
            version=own_version(),
            backend=lab.backend,
            devices=models,
            outcomes=tuple(_outcomes(lab, support, began)),
            unchecked=unchecked(support),
        )


def unchecked(support: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Return the libraries that a backend's table has and of which no message is known here."""
    checked = {_library(name) for name in (*MESSAGES, ALL_REDUCE) if support.get(name)}
    return tuple(sorted({_library(name) for name in support} - checked - UNTRIED))


def _library(name: str) -> str:
    return name.partition(".")[0]


def _outcomes(
    lab: System, support: Mapping[str, frozenset[str]], began: Callable[[str], object]
) -> Iterator[Outcome]:
    """Try one thing after the other; the faults come last."""
    random = np.random.default_rng(0)
    for device in lab.devices:
        for name, message in MESSAGES.items():
            package = PACKAGES.get(_library(name)) if lab.backend == "cuda" else None
            if package is not None and find_spec(package) is None:
                continue
            for dtype in sorted(support.get(name, ())):
                began(f"{name} {dtype} on {device.name}")
                check = partial(message, Operands(device, dtype, random))
                yield _outcome(name, dtype, device.name, check)
    everywhere = ", ".join(device.name for device in lab.devices)
    for dtype in sorted(support.get(ALL_REDUCE, ())):
        began(f"{ALL_REDUCE} {dtype}")
        yield _outcome(ALL_REDUCE, dtype, everywhere, partial(all_reduce, lab, dtype, random))
    for device in lab.devices:
        for name, tried in DEVICES.items():
            began(f"{name} on {device.name}")
            yield _outcome(name, "", device.name, partial(tried, lab, device, random))
    began("replay")
    yield _outcome("replay", "", lab.devices[0].name, partial(replay, lab.backend, random))


def _outcome(name: str, dtype: str, device: str, check: Callable[[], object]) -> Outcome:
    state: State = "right"
    said, begin = "", time.perf_counter()
    try:
        check()
    except Wrong as wrong:
        state, said = "wrong", str(wrong)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other checks run
        state, said = "failed", f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - begin
    said = " ".join(said.split())[:SAID]
    return Outcome(name=name, dtype=dtype, device=device, state=state, said=said, seconds=seconds)
