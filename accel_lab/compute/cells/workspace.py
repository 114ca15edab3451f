"""The namespace that the cells of a notebook have in a context, and the running of cells in it.

All of it happens in a context process, on the dispatcher's thread. A namespace lives as long as its
context.
"""

import builtins
import pickle
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from accel_lab.compute.arrays import jax_interop, torch_interop
from accel_lab.compute.cells import lent_buffers
from accel_lab.compute.cells.captured_objects import CapturedObjects
from accel_lab.compute.cells.cell_code import TIMES, loop_of, parts_of, remember
from accel_lab.compute.cells.cell_execution import Cell, Piece, Ran, Resident, Result, Timed
from accel_lab.compute.cells.definitions import compiled, globals_of
from accel_lab.compute.cells.global_random import drawing_from
from accel_lab.compute.cells.mutable_parts import ATOMS, Way, written
from accel_lab.compute.cells.plain_data import frozen, thawed
from accel_lab.compute.cells.write_back import copied, holds_changing
from accel_lab.compute.execution.backend import UserCode
from accel_lab.compute.execution.cost_meter import Cost, CostMeter, Span, numbers
from accel_lab.compute.machine.stack_frames import lines_of
from accel_lab.compute.output import ipython_display, matplotlib_figures
from accel_lab.compute.output.formatting import text
from accel_lab.errors import InvalidArgument, StaleRef

_NOTHING = object()
LEAST_RUN_S = 0.1
"""How long a timed run takes at least when nobody says how often it repeats its cell."""


class Kept(NamedTuple):
    """What of a workspace outlives its context, when its device is suspended.

    `told` lists the names whose values the notebook knows, `counted` the objects so far.
    """

    names: dict[str, Any]
    told: list[str]
    serials: dict[str, int]
    counted: int


class Workspace:
    """The namespace of one notebook in one context.

    Beside what cells bind it has `display`, and `xp`: NumPy on `host`, CuPy on `cuda`.

    Parameters:
        user_code: what it has of the device.
        generation: of the context.
    """

    def __init__(self, user_code: UserCode, generation: int) -> None:
        self._user_code = user_code
        self._generation = generation
        self._module = ModuleType("__main__")
        self.names: dict[str, Any] = vars(self._module)
        self.names |= {
            "__builtins__": builtins,
            "xp": user_code.arrays,
        }
        self._own = frozenset(self.names)
        self._told: dict[str, Any] = {}  # what the notebook's handles stand for
        self._serials: dict[str, int] = {}
        self._count = generation << 32  # never the serial of another life
        self._plain: dict[str, tuple[int, bytes]] = {}  # by name: which object, and its copy
        self._captured: dict[
            str, tuple[Any, bytes | CapturedObjects]
        ] = {}  # what may go back, and as it came
        self._generators: dict[str, bytes] = {}
        self._stopped = ""
        self._ended = 0, Ran(generation)  # the last cell that has ended well, and what it did

    def run(self, cell: Cell, meter: CostMeter, *, quiet: bool) -> Ran:
        """Run a cell, wait for the device to be through with it, and tell what it cost.

        Parameters:
            quiet: do not wait and tell, and show nothing that it displays.

        Raises:
            Exception: what the cell raises.
        """
        body, last = parts_of(cell.source, cell.filename)
        self._take(cell)
        with self._letting_go(cell.only):
            value, cost, shown_bytes = self._execute(cell, body, last, meter, quiet=quiet)
        used = (*body.co_names, *(last.co_names if last is not None else ()))
        ran = self.outcome(frozenset(used))
        self._ended = cell.number, replace(ran, arrays=dict.fromkeys(ran.arrays))
        ran.cost, ran.shown_bytes = cost, shown_bytes
        if value is not None and cell.result:
            ran.result = self._result(cell.result, value)
        return ran

    def _result(self, name: str, value: Any) -> Result:
        """Return what the last line has shown; an object that has no name gets this one."""
        known = (one for one, told in self._told.items() if told is value is self.names.get(one))
        # Equal numbers may be one object, so their names tell nothing.
        first = "" if type(value) in ATOMS else next(known, "")
        array = np.asarray(value) if isinstance(value, np.generic) else value
        if self._is_array(array) and not self._would_differ(array):
            return Result(first, array)
        if not first:
            if (copy := frozen(value)) is not None:
                return Result("", copy=copy)
            first = name
            self._count += 1
            self._serials[first] = self._count
            self.names[first] = self._told[first] = value
        stays = first in self._serials  # else it is the notebook's own
        return Result(first, resident=self._describe(first) if stays else None)

    def _execute(
        self, cell: Cell, body: CodeType, last: CodeType | None, meter: CostMeter, *, quiet: bool
    ) -> tuple[Any, Cost | None, int]:
        """Run the code of a cell; return what its last line has shown, and what it cost.

        Third is how many bytes it has shown.
        """
        value = None

        def execute() -> None:
            nonlocal value
            exec(body, self.names)  # noqa: S102 - that is what a cell is for
            if last is not None:
                value = eval(last, self.names)  # noqa: S307 - as above

        cost = None
        with (
            drawing_from(cell.generators) as self._generators,
            ipython_display.muted(when=quiet),
        ):
            before = ipython_display.nbytes()
            try:
                if quiet:
                    execute()
                else:
                    cost = meter.cost(execute)
                if value is not None:
                    ipython_display.display(value)
            except KeyboardInterrupt as error:
                self._stopped = lines_of(error)
                raise
            except Exception:
                with suppress(Exception):  # what the cell has raised is what it is told
                    matplotlib_figures.show()
                raise
            matplotlib_figures.show()
            return None if quiet else value, cost, ipython_display.nbytes() - before

    @contextmanager
    def _letting_go(self, names: list[str]) -> Iterator[None]:
        """Hold nothing of what these names stand for meanwhile, so that it ends when they do."""
        watched: dict[str, Callable[[Any], Any]] = {}
        try:
            for name in names:
                if name in self.names and self._told.get(name, _NOTHING) is self.names[name]:
                    watched[name] = _watched(self.names[name])
                    self._told[name] = _NOTHING
                    lent_buffers.lend(self.names[name])
            yield
        finally:
            lent_buffers.take_back()
            for name, known in watched.items():
                self._told[name] = known(self.names.get(name, _NOTHING))

    def call(
        self, cell: Cell, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Ran:
        """Call an object that a cell has left, as if a cell did.

        Parameters:
            cell: has what it uses of the notebook, and no text.

        Raises:
            Exception: what it raises.
        """
        self._take(cell)
        with self._letting_go(cell.only), drawing_from(cell.generators) as self._generators:
            try:
                value = function(*args, **kwargs)
            except KeyboardInterrupt as error:
                self._stopped = lines_of(error)
                raise
            finally:
                with suppress(Exception):  # the answer, or what was raised, goes first
                    matplotlib_figures.show()
        used = globals_of(function.__code__) if isinstance(function, FunctionType) else frozenset()
        ran = self.outcome(used | {name for name, one in self.names.items() if one is function})
        self._ended = cell.number, replace(ran, arrays=dict.fromkeys(ran.arrays))
        # What is an array without axes on a card is a number of NumPy's on the host.
        ran.value = np.asarray(value) if isinstance(value, np.generic) else value
        return ran

    def time(self, cell: Cell, meter: CostMeter, *, number: int, repeat: int) -> Timed:
        """Run a cell again and again, and bind nothing; what it displays is dropped.

        Each run begins with the names as they are here, and repeats the cell `number` times in a
        loop. One repetition before the first run is not timed: it imports and compiles.

        Parameters:
            number: how often, or 0: as often as takes LEAST_RUN_S, of 1, 2, 5, 10, ….
            repeat: how many runs.

        Raises:
            Exception: what the cell raises.
        """
        loop = loop_of(cell.source, cell.filename)
        self._take(cell)
        before = dict(self.names)

        def run(number: int) -> Span:
            self.names[TIMES] = range(number)
            try:
                return meter.span(lambda: exec(loop, self.names))  # noqa: S102 - as in `run`
            finally:
                self.names.clear()
                self.names.update(before)

        try:
            with drawing_from(cell.generators), ipython_display.muted():
                run(1)
                if not number:
                    number = next(n for n in numbers() if run(n).wall_s >= LEAST_RUN_S)
                return Timed(number, [run(number) for _ in range(repeat)])
        except KeyboardInterrupt as error:
            self._stopped = lines_of(error)
            raise
        finally:
            self._captured = {}

    def define(self, cell: Cell, pieces: list[Piece], plain: dict[str, bytes]) -> Ran:
        """Define again what cells have defined; what fails is left out.

        Parameters:
            cell: has what the definitions use, and no text.
            plain: copies of objects that were there.
        """
        self._take(cell)
        copies = {name: thawed(data) for name, data in plain.items()}
        self.names |= copies
        for piece in pieces:
            remember(piece.source, piece.filename)
            for statement in compiled(*piece):
                with suppress(Exception):
                    exec(statement, self.names)  # noqa: S102 - it was run before
        self.names |= copies  # they may have changed since they were defined
        self._told |= dict.fromkeys(copies, _NOTHING)  # has handles, which are to be new ones
        return self.outcome()

    def _take(self, cell: Cell) -> None:
        """Bind what a cell uses of the notebook, where pickle looks for the cells' classes."""
        sys.modules["__main__"] = self._module
        self._generators = {}
        self._stopped = ""
        for name in cell.gone:
            for known in (self.names, self._told, self._serials):
                known.pop(name, None)
        for pair in cell.modules:
            name, _, module = pair.partition("=")
            self.names[name] = _imported(module)
        for name, value in cell.given.items():
            if self.names.get(name, _NOTHING) is not value:
                self._serials.pop(name, None)  # a handle of what the name stood for is stale
        self.names.update(cell.given)
        self._told |= cell.given
        self._captured = {
            name: (cell.given[name], self._lend(cell.given[name], ways))
            for name, ways in cell.returned.items()
        }
        for name, array in cell.kept.items():
            if name not in self.names:
                kind = cell.tensors.get(name)
                value = array if kind is None else _made(array, kind)
                self.names[name] = self._told[name] = value
        for values in (cell.given, cell.kept):
            values.clear()  # they would hold what the cell lets go of

    def _lend(self, value: Any, ways: frozenset[Way]) -> bytes | CapturedObjects:
        whole = None if holds_changing(value) else copied(value)
        return whole or CapturedObjects(value, ways, self._is_array)

    def find(self, name: str, serial: int) -> Any:
        """Return an object that a cell has left.

        Raises:
            StaleRef: the name is gone, or stands for something else.
        """
        if self._serials.get(name) != serial or name not in self.names:
            raise StaleRef(f"{name!r} was deleted, reassigned, or lost with its context")
        return self.names[name]

    def drop(self, name: str, serial: int) -> None:
        """Forget an object, if the name still stands for it."""
        if self._serials.get(name) == serial:
            for known in (self.names, self._told):
                known.pop(name, None)
            del self._serials[name]

    def bound(self) -> dict[str, Any]:
        """Return what cells have bound, and what the notebook gave them."""
        return {
            name: value
            for name, value in self.names.items()
            if not (name in self._own or name.startswith("__") or isinstance(value, ModuleType))
        }

    def serial(self, name: str) -> int:
        """Return the number of the object that the notebook has a handle of; 0 if it has none."""
        return self._serials.get(name, 0)

    def forget(self, name: str, value: Any) -> None:
        """Forget whatever a name stands for, if it still stands for `value`."""
        if self.names.get(name) is value:
            for known in (self.names, self._told, self._serials):
                known.pop(name, None)

    def state(self) -> Kept:
        """Return what is to be kept of it."""
        names = {name: value for name, value in self.names.items() if name not in self._own}
        told = [name for name, value in self._told.items() if names.get(name) is value]
        return Kept(names, told, dict(self._serials), self._count)

    def take_up(self, kept: Kept) -> None:
        """Be as another was that its context has lost."""
        self.names.update(kept.names)
        self._told = {name: self.names[name] for name in kept.told if name in kept.names}
        self._serials, self._count = kept.serials, kept.counted

    def rebind(self, renewed: Callable[[Any], Any]) -> None:
        """Replace what was defined in a module that has been loaded again."""
        for name, value in list(self.names.items()):
            if name not in self._own:
                self.names[name] = renewed(value)

    def told_again(self, number: int) -> Ran:
        """Tell what a cell has done whose answer was not taken, also where it has failed.

        One that has caught its interrupt has ended well, and is not asked any more.
        """
        last, before = self._ended
        if last != number:
            return self.outcome()
        self._ended = 0, Ran(self._generation)
        for name in (*before.arrays, *before.residents):
            self._told.pop(name, None)
        ran = self.outcome()
        return replace(
            ran,
            same=before.same | ran.same,
            renewed=before.renewed | ran.renewed,
            plain=before.plain | ran.plain,
            returned=before.returned,
            changed=before.changed,
            stays=before.stays,
            beyond=before.beyond,
            gone=before.gone,
            generators=before.generators,
        )

    def outcome(self, used: frozenset[str] = frozenset()) -> Ran:
        """Tell what is bound that the notebook does not know.

        Parameters:
            used: the names of objects that may look different now.
        """
        generators, self._generators = self._generators, {}
        ran = Ran(self._generation, stopped=self._stopped, generators=generators)
        own = self._give_back(ran)
        known = {id(self._told[name]): name for name in self._arrays_told()}
        for name, value in self.names.items():
            if name in self._own or isinstance(value, ModuleType):
                continue
            if name.startswith("_") and name not in self._told:
                continue
            if name in self._told and self._told[name] is value:
                continue
            self._told[name] = value
            # What is an array without axes on a card is a number of NumPy's on the host.
            array = np.asarray(value) if isinstance(value, np.generic) else value
            if self._is_array(array) and not self._would_differ(array):
                self._serials.pop(name, None)
                ran.arrays[name] = array
                first = known.setdefault(id(value), name)
                if first != name:
                    ran.same[name] = first
                if kind := torch_interop.kind_of(array) or jax_interop.kind_of(array):
                    ran.tensors[name] = kind
            else:
                self._count += 1
                self._serials[name] = self._count
                ran.residents[name] = self._describe(name)
                if id(value) in own:
                    ran.same[name] = own[id(value)]
        ran.imported = [n for n, one in self.names.items() if isinstance(one, ModuleType)]
        ran.gone = [name for name in self._told if name not in self.names]
        for name in ran.gone:
            del self._told[name]
            self._serials.pop(name, None)
        self._copy(ran, used)
        return ran

    def _give_back(self, ran: Ran) -> dict[int, str]:
        """Return what the notebook has given and the cell has changed in place.

        What is not plain any more stays here, as if the cell had bound it. All else has, when it is
        changed there, whatever it has here; that is returned, by `id`.
        """
        captured, self._captured = self._captured, {}
        own: dict[int, str] = {}
        for name, (value, before) in captured.items():
            bound = self.names.get(name) is value
            if isinstance(before, CapturedObjects):
                changes, other = before.changes()
                if changes:
                    ran.changed[name] = pickle.dumps(changes)
                if before.beyond:
                    ran.beyond[name] = written(name, value, before.beyond[0])
                if other and bound:
                    self._told.pop(name, None)
                    ran.stays[name] = written(name, value, other[0])
                if not other and not before.beyond:
                    own[id(value)] = name
                continue
            now = copied(value)
            if now is None:
                if bound:
                    self._told.pop(name, None)
                    ran.stays[name] = f"something in {name}"
                continue
            own[id(value)] = name
            if now != before:
                ran.returned[name] = now
        return own

    def _copy(self, ran: Ran, used: frozenset[str]) -> None:
        """Copy the objects of plain data that the notebook does not know as they are."""
        for name, serial in self._serials.items():
            copy = frozen(self.names.get(name))
            if copy is None:
                changed = self._plain.pop(name, None) is not None or name in used
            elif changed := self._plain.get(name) != (serial, copy):
                self._plain[name] = serial, copy
                ran.plain[name] = copy
            if changed and name in self.names and name not in ran.residents:
                ran.renewed[name] = self._describe(name)

    def _arrays_told(self) -> Iterator[str]:
        """Yield the names under which the notebook has handles of arrays."""
        for name, value in self._told.items():
            if self.names.get(name) is value and name not in self._serials:
                yield name

    def _describe(self, name: str) -> Resident:
        value = self.names[name]
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        serial, nbytes = self._serials[name], self._device_bytes(value)
        return Resident(name, serial, kind, text(value), nbytes, callable(value))

    def _device_bytes(self, value: Any) -> int:
        """Add up the arrays that an object is seen to hold: parameters, attributes, items."""
        if isinstance(value, FunctionType | type | ModuleType):
            return 0
        parameters = getattr(value, "parameters", None)
        parts: list[Any]
        if callable(parameters):
            try:
                parts = list(parameters())
            except Exception:  # noqa: BLE001 - not what it looks like
                parts = []
        elif isinstance(value, dict):
            parts = list(value.values())
        elif isinstance(value, list | tuple | set):
            parts = list(value)
        else:
            parts = list(getattr(value, "__dict__", {}).values())
        return sum(int(getattr(part, "nbytes", 0)) for part in parts if self._is_array(part))

    def _is_array(self, value: Any) -> bool:
        """Whether this is an array of the device."""
        try:
            return self._user_code.adopt(value) is not None
        except InvalidArgument:  # one of another card, or of a dtype that no buffer has
            return False

    def _would_differ(self, array: Any) -> bool:
        """Whether a buffer would have a copy, of which what is written later is not seen here."""
        adopted = self._user_code.adopt(array)
        if adopted is None or type(adopted[0]) is not type(array) or not array.size:
            return False
        if self._user_code.same_memory(adopted[0], array):
            return False
        while isinstance(array, np.ndarray) and not array.flags.writeable:
            array = array.base  # nobody writes what nobody may
        return array is not None


def _watched(value: Any) -> Callable[[Any], Any]:
    """Return what tells later, without keeping it, what of a value there is still.

    Called with what has its name then, it returns the value, or _NOTHING if that is gone. What
    cannot be watched is taken to be what has its place and its type.
    """
    try:
        watched = weakref.ref(value)
    except TypeError:
        place = id(value), type(value)
        return lambda now: now if (id(now), type(now)) == place else _NOTHING
    return lambda _: _NOTHING if (found := watched()) is None else found


def _imported(name: str) -> ModuleType:
    __import__(name)
    return sys.modules[name]


def _made(array: Any, kind: str) -> Any:
    """Return what a cell has bound as an array of PyTorch's or JAX's."""
    if kind == jax_interop.KIND:
        return jax_interop.made(array)
    return torch_interop.made(array, kind)
