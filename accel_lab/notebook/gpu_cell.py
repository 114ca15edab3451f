"""`%%gpu`: a cell that runs inside a device's context, where its arrays are.

Names of the notebook that the cell uses go in, names that it binds come back: arrays as AccelRefs,
all else as ObjectRefs. What it prints appears under the cell while it runs.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from accel_lab.compute.cells.cell_execution import Cell, Ran, Resident, Result, Timed
from accel_lab.compute.cells.definitions import text
from accel_lab.compute.cells.global_random import set_states, states
from accel_lab.compute.cells.plain_data import thawed
from accel_lab.compute.cells.workspace_registry import Workspaces
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.compute.message.service import in_context
from accel_lab.compute.output import cell_origin
from accel_lab.compute.residency.resident import offer_frames
from accel_lab.compute.user_code.notebook_globals import NotebookGlobals
from accel_lab.errors import AccelError, Interrupted, InvalidArgument, OutOfMemory, UserCodeError
from accel_lab.notebook import timing
from accel_lab.notebook.callable_ref import CallableRef
from accel_lab.notebook.captures import Captures, captures_of, is_ipythons, is_lost
from accel_lab.notebook.cell_options import COMMAS, parse
from accel_lab.notebook.footer import Footer
from accel_lab.notebook.names import bound_names, used_names
from accel_lab.notebook.object_ref import ObjectRef
from accel_lab.notebook.space import Space
from accel_lab.notebook.timing import Timing

if TYPE_CHECKING:
    from accel_lab.compute.device import Device

KEPT_BYTES = 64 << 20
"""What is kept on the host of the arrays of one cell, so that they survive a fault."""
OUTCOME_WITHIN_S = 60.0
INTERRUPTED_S = 1.0
_NO_CUPY = ("No module named 'cupy'", "No module named 'cupyx'")


class GpuCells:
    """Runs cells for one notebook.

    Parameters:
        names: the notebook's namespace.
        device: returns the device of a name, or the one to take when none is given.
        end: shows what a cell cost, below all else.
        result: takes what the last line of a cell has shown; None where nobody keeps that.
    """

    def __init__(
        self,
        names: dict[str, Any],
        device: Callable[[str | None], "Device"],
        end: Callable[[Footer], object] = lambda _: None,
        result: Callable[[Any], object] | None = None,
    ) -> None:
        self._names = names
        self._device = device
        self._end = end
        self._take_result = result
        self._name = f"notebook {os.getpid()}"
        self._count = 0
        self._filename = self._stopped = ""

    def run(self, line: str, source: str) -> None:
        """Run a cell; blocks until it has run. Ctrl-C interrupts its Python code.

        Raises:
            InvalidArgument: an option, the cell's text, or something that it uses does not fit.
            UserCodeError: what the cell raised, with the lines of the cell.
            AccelError: as `device.run`.
        """
        with self._interruptible():
            self._run(line, source)

    def _run(self, line: str, source: str) -> None:
        began = time.perf_counter()
        options = parse(line)
        try:
            device = self._device(options.device)
        except InvalidArgument as error:
            if not options.meant:
                raise
            raise InvalidArgument(f"{error}; {COMMAS}: -o {options.meant}") from error
        space = self._space(device)
        captures = captures_of(source, self._home(), device, space)
        ran: Ran
        ran, kept_bytes = self._call(
            device,
            space,
            Workspaces.run_cell,
            source,
            captures,
            options.names,
            result=(shown := self._name_of_result(space)),
            quiet=options.quiet,
        )
        wall_s = time.perf_counter() - began
        self._bind_all(device, space, captures, ran, options.names, source)
        if ran.result is not None and self._take_result is not None:
            self._take_result(self._result(device, ran, ran.result, shown))
        known = ran.arrays.keys() | ran.residents.keys() | ran.returned.keys() | ran.changed.keys()
        known |= bound_names(source) & device.notes[self].bound.keys()
        if options.names is not None and (unknown := options.names - known):
            raise InvalidArgument(f"-o: the cell did not assign {', '.join(sorted(unknown))}")
        if ran.cost is not None:
            span, peak = ran.cost
            moved = captures.nbytes, ran.shown_bytes, kept_bytes
            self._end(Footer(device.name, span.device_s, wall_s, *moved, peak))

    def _name_of_result(self, space: Space) -> str:
        """Return what cells are to call what the last line shows; empty if that is not kept."""
        if self._take_result is None:
            return ""
        number = cell_origin.current().cell
        name = f"_{number}"  # as IPython does
        return name if number and name not in space.bound else f"{name}_{self._count + 1}"

    def _result(self, device: "Device", ran: Ran, result: Result, name: str) -> Any:
        """Return what the notebook has of what the last line has shown.

        Parameters:
            name: the one that is new with it, where it had none.
        """
        if result.copy is not None:
            return thawed(result.copy)
        space: Space = device.notes[self]
        if (handle := space.handle(result.name)) is not None:
            return handle
        if result.resident is None:
            return result.array
        handle = self._object(device, ran.generation, result.resident, None)
        if result.name == name:
            space.bound[name] = handle
        return handle

    def call(self, ref: ObjectRef, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call what a handle stands for where that is; blocks until it has returned.

        Raises:
            UserCodeError: what it raised, or its answer does not pickle.
            AccelError: as `device.run`.
        """
        with self._interruptible():
            device, name = ref.device, ref.name
            has_name = self._names.get(name) is ref
            space = self._space(device)  # where it was lost, it may be defined again by now
            if has_name and isinstance(again := self._names[name], ObjectRef):
                ref = again
            captures = Captures(self._home())
            captures.add_call(ref, (*args, *kwargs.values()), device, space)
            ran: Ran
            ran, _ = self._call(
                device,
                space,
                Workspaces.call,
                "",
                captures,
                None,
                called=name,
                callee=ref,
                args=args,
                kwargs=kwargs,
            )
            self._bind_all(device, space, captures, ran, None)
            return ran.value

    def _bind_all(
        self,
        device: "Device",
        space: Space,
        captures: Captures,
        ran: Ran,
        chosen: frozenset[str] | None,
        source: str = "",
    ) -> None:
        """Bind what a cell has bound, and take note of what it has defined."""
        if ran.generation != space.generation:  # that was lost, and the cell ran in the next
            space = device.notes[self] = space.after_loss(ran.generation)
        self._bind(device, space, captures, ran, chosen)
        made = ran.arrays.keys() | ran.residents.keys()
        space.note(source, self._filename, made | set(ran.gone))

    def time(self, line: str, source: str) -> Timing:
        """Run a cell again and again, and return how long it takes; blocks meanwhile.

        It binds nothing here or there, and what it displays is dropped. What it changes in place it
        changes as often as it runs.

        Raises:
            AccelError: as `run`.
        """
        with self._interruptible():
            return self._time(line, source)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Have an interrupt show the lines of the cell, and none of ours."""
        self._stopped = ""
        try:
            yield
        except KeyboardInterrupt:
            lines = [*self._stopped.splitlines(), "KeyboardInterrupt"]
            stopped: Any = KeyboardInterrupt()
            stopped._render_traceback_ = lambda: lines  # IPython asks for it
            raise stopped from None

    def _time(self, line: str, source: str) -> Timing:
        options = timing.parse(line)
        device = self._device(options.device)
        space = self._space(device)
        captures = captures_of(source, self._home(), device, space)
        timed: Timed
        timed, _ = self._call(
            device,
            space,
            Workspaces.time_cell,
            source,
            captures,
            frozenset(),
            number=options.number,
            repeat=options.repeat,
        )
        return Timing(device.name, timed)

    def _call(
        self,
        device: "Device",
        space: Space,
        function: Callable[..., Any],
        source: str,
        captures: Captures,
        chosen: frozenset[str] | None,
        called: str | None = None,
        result: str = "",
        **options: Any,
    ) -> tuple[Any, int]:
        """Have a function of `Workspaces` run a cell; return its answer.

        Beside it, the bytes of the arrays that are kept on the host because of it. If it fails,
        what it had bound of the `chosen` names is bound here; None are all.
        """
        device.settle(exact=True)
        self._count += 1
        number = cell_origin.current().cell
        filename = f"<gpu cell {self._count if number is None else number}>"
        self._filename = filename
        cell = Cell(
            source,
            filename,
            captures.given,
            captures.modules,
            captures.kept,
            captures.tensors,
            captures.returned,
            captures.gone,
            [
                name
                for name in space.only(self._names, captures.given, captures.kept)
                if chosen is None or name in chosen  # the notebook keeps what it has of others
            ],
            states(source or "random", self._names) if source or called else {},
            self._count,
            result,
        )
        ran: Ran | None = None
        kept_bytes = 0
        try:
            name = called or filename.strip("<>")
            with captures.home.entered():
                where = in_context(Workspaces)
                reply = device.run(function, where, self._name, cell, called=name, **options)
            space.tell(cell.given, cell.gone)
            answer = reply.result()
            if isinstance(answer, Ran):
                ran = answer
                _join(space, captures, ran)
        except KeyboardInterrupt:
            device.take_back()  # it may have come before anybody waited
            ran = self._bind_what_failed(device, space, captures, chosen, cell, INTERRUPTED_S)
            raise
        except (UserCodeError, OutOfMemory, Interrupted) as error:
            ran = self._bind_what_failed(device, space, captures, chosen, cell, OUTCOME_WITHIN_S)
            if isinstance(error, Interrupted):  # as the cell of a notebook that raises it
                raise KeyboardInterrupt from None
            if isinstance(error, UserCodeError) and source:
                error.remedy = "Correct the cell; the text has its lines, __cause__ its exception."
                if str(error.__cause__) in _NO_CUPY:
                    error.remedy = (
                        "There is no CuPy without a GPU. Write cp = xp in place of the import: xp "
                        "is CuPy on a GPU, and NumPy here."
                    )
                if unseen := captures.unseen(error):
                    error.remedy = (
                        f"Write {unseen} in the cell, if only on a line of its own: it goes along "
                        "with a cell whose own text has it, outside of strings."
                    )
            offer_frames(device, error)
            if (stale := captures.why_missing(device, error)) is not None:
                raise stale from error
            raise
        finally:  # a cell that failed may have written to them, too
            kept_bytes = _keep(device, _touched(cell, ran))
        return answer, kept_bytes

    def _bind_what_failed(
        self,
        device: "Device",
        space: Space,
        captures: Captures,
        chosen: frozenset[str] | None,
        cell: Cell,
        within_s: float,
    ) -> Ran | None:
        """Bind what a cell had when it failed, as a cell of the notebook's own does."""
        try:
            asked = device.run(Workspaces.outcome, in_context(Workspaces), self._name, cell.number)
        except AccelError:
            return None
        try:
            ran: Ran = asked.result(within_s)
        except TimeoutError:  # it still runs
            asked.cancel()
            return None
        except AccelError:  # its context is lost as well
            return None
        self._stopped = ran.stopped
        if ran.generation != space.generation:
            return None
        _join(space, captures, ran)
        self._bind(device, space, captures, ran, chosen)
        made = ran.arrays.keys() | ran.residents.keys()
        made |= bound_names(cell.source) & set(ran.imported)
        space.note_part(cell.source, cell.filename, made, set(ran.gone))
        return ran

    def _home(self) -> NotebookGlobals:
        return NotebookGlobals(self._names, self._name)

    def _space(self, device: "Device") -> Space:
        """Return what is known of the namespace; after a loss, define again what can be."""
        space: Space = device.notes.setdefault(self, Space(device.generation))
        space.let_go(self._names)
        if space.generation != device.generation:
            space = device.notes[self] = space.after_loss(device.generation)
        if space.lost is not None:
            lost, space.lost = space.lost, None
            private, space.lost_private = space.lost_private, set()
            self._define(device, space, lost)
            gone = [
                name
                for name, ref in lost.items()
                if self._names.get(name) is ref and is_lost(device, ref)
            ]
            gone += sorted(private.difference(*[piece.names for piece in space.pieces]))
            if gone:
                sys.stderr.write(
                    f"{device.name} lost its context, and with it {', '.join(gone)}; run the cells "
                    "again that made them\n"
                )
        return space

    def _define(self, device: "Device", space: Space, lost: dict[str, Any]) -> None:
        """Define imports, functions, classes and plain data again, under the names they have."""
        mine = [(name, handle) for name, handle in lost.items() if self._names.get(name) is handle]
        plain = {
            name: handle.copy
            for name, handle in mine
            if isinstance(handle, ObjectRef) and handle.copy is not None
        }
        captures = Captures(self._home())
        used = used_names("\n".join(text(piece.source, piece.names) for piece in space.pieces))
        for name in used:
            value = self._names.get(name)
            if value is None or is_lost(device, value) or is_ipythons(value):
                continue
            with suppress(InvalidArgument):
                captures.add(device, space, name, value)
        captures.add_behind(used, device, space, strict=False)
        ran: Ran
        try:
            ran, _ = self._call(
                device,
                space,
                Workspaces.define,
                "",
                captures,
                frozenset(),
                pieces=space.pieces,
                plain=plain,
            )
        except AccelError:  # the next cell says what is wrong
            return
        for name in ran.residents:
            if is_lost(device, self._names.get(name)):
                self._names[name] = space.bound[name] = self._new(device, ran, name)

    def _new(self, device: "Device", ran: Ran, name: str) -> ObjectRef:
        return self._object(device, ran.generation, ran.residents[name], ran.plain.get(name))

    def _object(
        self, device: "Device", generation: int, resident: Resident, copy: bytes | None
    ) -> ObjectRef:
        """Return the handle of an object that is new."""
        made = device, self._name, resident, generation, copy
        return CallableRef(*made, self.call) if resident.callable else ObjectRef(*made)

    def _bind(
        self,
        device: "Device",
        space: Space,
        captures: Captures,
        ran: Ran,
        chosen: frozenset[str] | None,
    ) -> None:
        captures.take_back(ran, chosen)
        set_states(ran.generators)
        space.renew(ran)
        made: dict[str, Any] = dict(ran.arrays)
        own = captures.own(ran, chosen)
        for name in ran.residents:
            if name not in own:
                made[name] = self._new(device, ran, name)
        for name, value in own.items():
            self._names[name] = space.given[name] = value
            space.bound.pop(name, None)
        for name, handle in made.items():
            if chosen is None or name in chosen:
                self._names[name] = space.bound[name] = handle
                if kind := ran.tensors.get(name):
                    space.tensors[name] = handle, kind
            else:  # the notebook's name stands for something else
                space.bound.pop(name, None)
        for name in (*made, *ran.gone):
            space.given.pop(name, None)
        self._delete(space, captures, ran, chosen)

    def _delete(
        self, space: Space, captures: Captures, ran: Ran, chosen: frozenset[str] | None
    ) -> None:
        """Delete what a cell has deleted, where the notebook has nothing else by that name."""
        for name in ran.gone:
            known = space.bound.pop(name, _nothing)
            if name in captures.given and (chosen is None or name in chosen):
                known = captures.given[name]
            if name in self._names and self._names[name] is known:
                del self._names[name]


def _join(space: Space, captures: Captures, ran: Ran) -> None:
    """Have one handle for what the notebook knows by two names: so it is kept, and comes back."""
    known = space.bound | captures.given
    for name, first in ran.same.items():
        handle = ran.arrays.get(first, known.get(first))
        if isinstance(handle, Ref):
            ran.arrays[name] = handle


def _touched(cell: Cell, ran: Ran | None) -> list[Any]:
    """Return what a cell has made, and what it got and has not let go of."""
    over = set(cell.only)
    if ran is not None:
        over &= {*ran.gone, *ran.arrays, *ran.residents}
    got = cell.given | cell.kept
    made = [] if ran is None else [*ran.arrays.values()]
    if ran is not None and ran.result is not None and not ran.result.name:
        made.append(ran.result.array)
    return [*(value for name, value in got.items() if name not in over), *made]


def _keep(device: "Device", touched: list[Any]) -> int:
    """Keep a cell's arrays on the host, the smallest first: it is not run again by itself.

    Returns the bytes that are fetched for that.
    """
    refs = {ref.id: ref for ref in touched if isinstance(ref, AccelRef)}
    fetched = 0
    for ref in sorted(refs.values(), key=lambda ref: ref.nbytes):
        if fetched + ref.nbytes > KEPT_BYTES:
            break
        try:
            device.checkpoint(ref).add_waiter(_nothing)
        except AccelError:  # the system keeps nothing, or has just lost its context
            break
        fetched += ref.nbytes
    return fetched


def _nothing() -> None:
    """Wait for a copy of which nobody has to hear: `ref.durability` tells."""
