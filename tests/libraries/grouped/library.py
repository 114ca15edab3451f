"""Sums over several devices, through files that all contexts see; for tests alone."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.groups.group import Group
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation, PartialSpec, Spec
from accel_lab.errors import AccelError, GroupAborted, InvalidArgument
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.operand import require_out
from accel_lab.libraries.authoring.options import Options


class SumAborted(GroupAborted):
    """A sum over several devices was aborted."""


class CannotSum(AccelError):
    """A rank's part was to fail."""


class SumAll(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=900):
    """Return the sum of all ranks' `x`, on each of them, through files in `folder`.

    `way` is how the handler waits for the others. With `fails` this rank's part raises, with
    `stuck` it does not heed an abort.
    """

    library: ClassVar[str] = "grouped"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    grouped: ClassVar = SumAborted
    x: AccelRef
    folder: str
    _: Options
    way: str = "poll"
    fails: bool = False
    stuck: bool = False
    out: AccelRef | None = None

    def infer(self) -> Spec:
        """Return the shape and dtype of `x`."""
        if self.way not in ("poll", "blocking", "handler"):
            raise InvalidArgument(f"SumAll: way is {self.way!r}")
        spec = Spec(self.x.shape, self.x.dtype)
        require_out(self, self.out, spec)
        return spec


class Extremes(NamedTuple):
    """The least and the greatest."""

    least: AccelRef
    greatest: AccelRef


class ExtremesAll(Operation[Extremes], frozen=True, array_like=True, eq=False, tag=901):
    """Return the least and the greatest elements of all ranks' positive ones, sorted."""

    library: ClassVar[str] = "grouped"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    grouped: ClassVar = GroupAborted
    x: AccelRef
    folder: str

    def infer(self) -> tuple[PartialSpec, Spec]:
        """Return a list of unknown length, and one of one."""
        return PartialSpec((None,), self.x.dtype), Spec((1,), self.x.dtype)


class Meet(Operation[None], frozen=True, array_like=True, eq=False, tag=902):
    """Wait until all ranks are here; note in `folder` that this one has begun."""

    library: ClassVar[str] = "grouped"
    dtypes: ClassVar = frozenset({""})
    grouped: ClassVar = GroupAborted
    folder: str
    label: str = ""


class GroupedLibrary(Protocol):
    """What a backend provides."""

    def to_host(self, x: Any) -> Any:
        """Return a NumPy array of it; blocks."""

    def write(self, out: Any, value: Any) -> None:
        """Copy a NumPy array there; blocks."""


class Exchange:
    """What the ranks of one message tell each other: a file for each."""

    def __init__(self, folder: str, group: Group) -> None:
        self._at, self._group = Path(folder), group

    def _file(self, rank: int) -> Path:
        return self._at / f"{self._group.id}-{rank}.npy"

    def tell(self, value: Any) -> None:
        """Give this rank's part to the others."""
        mine = self._file(self._group.rank)
        partly = mine.with_suffix(".part")
        with partly.open("wb") as file:
            np.save(file, value)
        partly.replace(mine)

    def is_there(self) -> bool:
        """Whether all have told theirs."""
        return all(self._file(rank).exists() for rank in range(self._group.size))

    def told(self) -> list[Any]:
        """Return what all have told."""
        return [np.load(self._file(rank)) for rank in range(self._group.size)]


class GroupedActor(LibraryActor):
    """Owns the stream of one context."""

    library = "grouped"
    lib: GroupedLibrary

    @handles(SumAll)
    def sum_all(self, m: SumAll, launch: Launch) -> None:
        """Tell the others, and wait for them."""
        group, x, lib = launch.group, launch.read(m.x), self.lib
        assert group is not None
        if m.fails:
            raise CannotSum("this rank cannot")
        exchange = Exchange(m.folder, group)
        aborted = Path(m.folder) / f"aborted-{group.id}-{group.rank}"
        group.on_abort(aborted.touch)

        def finish(out: Any) -> None:
            lib.write(out, sum(exchange.told()))

        if m.way == "poll":
            exchange.tell(lib.to_host(x))
            ready: Callable[[], bool] = exchange.is_there
            if m.stuck:
                ready = _never_heeding(exchange.is_there)
            launch.poll(ready, lambda: finish(launch.write()))
            return
        if m.way == "handler":
            exchange.tell(lib.to_host(x))
            out = launch.write()
            _wait(exchange.is_there, group, stuck=m.stuck)
            finish(out)
            return
        out = launch.write()

        def work(worker: Any) -> None:
            del worker
            exchange.tell(lib.to_host(x))
            _wait(exchange.is_there, group, stuck=m.stuck)
            finish(out)

        launch.blocking(work)

    @handles(ExtremesAll)
    def extremes_all(self, m: ExtremesAll, launch: Launch) -> None:
        """Tell the others, and wait for them."""
        x, lib = launch.read(m.x), self.lib
        assert launch.group is not None
        exchange = Exchange(m.folder, launch.group)
        mine = lib.to_host(x)
        exchange.tell(np.sort(mine[mine > 0]))

        def finish() -> None:
            least = np.sort(np.array([one[0] for one in exchange.told()]))
            parts = launch.empties(least=least.shape)
            lib.write(parts.least, least)
            lib.write(parts.greatest, np.array([max(one[-1] for one in exchange.told())]))

        launch.poll(exchange.is_there, finish)

    @handles(Meet)
    def meet(self, m: Meet, launch: Launch) -> None:
        """Note that it has begun, and wait for the others."""
        group = launch.group
        assert group is not None
        if m.label:
            with (Path(m.folder) / f"order-{group.rank}").open("a") as file:
                file.write(f"{m.label}\n")
        exchange = Exchange(m.folder, group)
        exchange.tell(np.zeros(1))
        launch.poll(exchange.is_there, lambda: None)


def _never_heeding(ready: Callable[[], bool]) -> Callable[[], bool]:
    def ask() -> bool:
        while not ready():
            time.sleep(0.001)
        return True

    return ask


def _wait(ready: Callable[[], bool], group: Group, *, stuck: bool) -> None:
    while not ready():
        if group.aborted and not stuck:
            raise RuntimeError("it was aborted")
        time.sleep(0.001)
