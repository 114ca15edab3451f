"""A second system from the same moment."""

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from accel_lab.compute.device import Device
from accel_lab.compute.lineage.lineage import Lineage
from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.requests.requests import closed
from accel_lab.compute.residency.notebook_names import names as names_here
from accel_lab.errors import CannotKeep, InvalidArgument
from accel_lab.session.fork.carrying import Carrying
from accel_lab.session.fork.rebinding import Rebinding
from accel_lab.session.fork.taken import Key, Taken
from accel_lab.session.notebook import user_names
from accel_lab.system import System

_REMEDY = "Delete or free what lost names, or leave it out with fork(drop=True)."
_forks = itertools.count(1)


class Fork(System):
    """A second system, for a what-if: `with lab.fork() as other: other[x]`.

    Attributes:
        names: what the names of the notebook stand for here, of those that had to do with the
            system that was forked.
        lost: why others are not among them: what has failed or was freed, and with `drop=True` what
            cannot be taken along.
    """

    _instead = "fork it, as the system that it is of"
    again = "fork the system again"

    def __init__(self, backend: str, devices: list[int], **options: Any) -> None:
        self.names: dict[str, Any] = {}
        self.lost: dict[str, str] = {}
        self._rebinding: Rebinding | None = None
        super().__init__(backend, devices, **options)

    def __getitem__(self, of: Any) -> Any:
        """Return what stands here for a handle, or for what holds handles, of the other system.

        Raises:
            KeyError: there is no such thing here; says why.
        """
        if self._rebinding is None:
            raise KeyError("it is not made yet")
        return self._rebinding.found(of)

    def fork(
        self,
        names: Mapping[str, Any] | None = None,
        *,
        drop: bool = False,
        timeout_s: float = 120.0,
    ) -> "Fork":
        """Return another one, of its own names when none are given; see `System.fork`."""
        return fork(self, self.names if names is None else names, drop=drop, timeout_s=timeout_s)


def fork(system: Any, names: Mapping[str, Any] | None, *, drop: bool, timeout_s: float) -> Fork:
    """Return a second system from this moment, as `System.fork` says."""
    if system.is_closed:
        raise closed(system.name, system.again)
    if system._joined is not None:  # noqa: SLF001 - it belongs to systems
        raise InvalidArgument(f"{system.name} has devices of a cluster, which are not forked")
    until = time.monotonic() + timeout_s
    if names is None:
        names = user_names(names_here())
    taken = Taken(system, names)
    carried = _carryings(system, taken, until)
    lost = taken.lost | _lost(taken, carried)
    if lost and not drop:
        text = "; ".join(f"{what}: {why}" for what, why in lost.items())
        raise CannotKeep(f"{system.name} was not forked: {text}", remedy=_REMEDY, lost=lost)
    made = _opened(system)
    with _closed_on_failure(made):
        made.ready(max(0.0, until - time.monotonic()))
        refs: dict[Key, Ref[Any]] = {}
        answers: dict[Key, Any] = {}
        pairs: list[tuple[Device, Device]] = list(zip(system.devices, made.devices, strict=True))
        for device, other in pairs:
            one = carried[device.name]
            refs |= {(device.name, id_): ref for id_, ref in one.to(other).items()}
            answers |= {(device.name, id_): value for id_, value in one.answers.items()}
        rebinding = Rebinding(system, made, pairs, refs, answers, taken.absent)
        made._rebinding = rebinding  # noqa: SLF001 - its own
        made.lost.update(lost)
        for name, value in taken.names.items():
            try:
                made.names[name] = rebinding.made(value)
            except KeyError as error:  # what has failed is nothing there, either
                made.lost.setdefault(name, str(error.args[0]))
    return made


def _carryings(system: Any, taken: Taken, until: float) -> dict[str, Carrying]:
    """Look at what there is on each device."""
    system.flush()
    lineages: list[Lineage | None] = system._assembly.lineages or [None] * len(system.devices)  # noqa: SLF001
    return {
        device.name: Carrying(
            device,
            [ref for (name, _), ref in taken.refs.items() if name == device.name],
            lineage,
            system._contents,  # noqa: SLF001
            until,
        )
        for device, lineage in zip(system.devices, lineages, strict=False)
    }


def _lost(taken: Taken, carried: Mapping[str, Carrying]) -> dict[str, str]:
    """Return why what is no array cannot be made again, by the notebook's names."""
    return {
        taken.named((device, id_)): why
        for device, one in carried.items()
        for id_, why in one.lost.items()
    }


def _opened(system: Any) -> Fork:
    indices = [system._indices[device.name] for device in system.devices]  # noqa: SLF001
    options = system._opened_with  # noqa: SLF001
    name = f"{system.name} fork {next(_forks)}"
    return Fork(system.backend, indices, name=name, **options)


@contextmanager
def _closed_on_failure(made: Fork) -> Iterator[None]:
    try:
        yield
    except BaseException:
        made.close()
        raise
