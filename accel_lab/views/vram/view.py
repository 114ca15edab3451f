"""The view of the devices' memory, and what its buttons do."""

from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, cast

from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.message.service import in_context
from accel_lab.compute.residency import kept_objects
from accel_lab.compute.residency.holdings import ContextMemory
from accel_lab.compute.residency.notebook_names import handle_in, notebook
from accel_lab.display.buffer_number import short
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.views.scene.observer import Lab, Source, Want
from accel_lab.views.scene.scene import Scene
from accel_lab.views.vram.state import device_nodes, state_of
from accel_lab.views.vram.words import html, text
from accel_lab.views.widget.publisher import DEFAULT_HZ
from accel_lab.views.widget.view import State, View, show

if TYPE_CHECKING:
    from accel_lab.system import System


class VramView(View):
    """The memory of a system's devices."""

    name = "vram"
    wants: ClassVar[frozenset[Want]] = frozenset({"memory"})
    _said = ""  # what became of the last command

    def __init__(self, source: Lab | Source) -> None:
        super().__init__(source)
        self._folded: tuple[list[object], object, State] = [], None, {}

    def fold(self, scene: Scene) -> State:
        """Fold the newest samples: what `widgets/vram/draw.js` says of a state."""
        state = self._state(scene).copy()
        if self.source.lab is not None and not scene.closed:
            state["acts"] = True
            if self._said:
                state["said"] = self._said
        return state

    def _state(self, scene: Scene) -> State:
        """Return the state of the samples; folds are more frequent than these."""
        samples: list[object] = [*scene.memory.values(), *scene.lost.values()]
        devices = [(node.name, node.state, node.generation) for node in device_nodes(scene)]
        name = "" if scene.tree is None else scene.tree.name
        mark = (devices, name, scene.closed, scene.unrecorded.copy())
        before = self._folded
        if (
            before[1] != mark
            or len(before[0]) != len(samples)
            or not all(map(is_, before[0], samples))
        ):
            self._folded = samples, mark, state_of(scene)
        return self._folded[2]

    def text(self, state: State) -> str:
        """Draw a line for each device, and the largest blocks as aligned columns."""
        return text(state)

    def html(self, state: State) -> str:
        """Draw a table of the devices and one of the largest blocks."""
        return html(state)

    # What the buttons do.

    def do_free(self, device: str, id: int) -> None:  # noqa: A002 - as the message calls it
        """Free a buffer; using a handle of it later raises StaleRef.

        Returns at once: it goes after what was sent before.

        Raises:
            InvalidArgument: no name of the notebook holds the buffer.
            AccelError: the device takes no messages.
        """
        ref = self._handle(device, id)
        ref.free()
        ping = ref.device.ping()  # the freed go with the next batch

        def done() -> None:
            self._say(device, id, "is freed; what uses it now fails with StaleRef", ping.error)

        ping.add_waiter(done)

    def do_checkpoint(self, device: str, id: int) -> None:  # noqa: A002 - as the message calls it
        """Keep a buffer's contents on the host, so that a loss does not take them.

        Blocks for room in the arena, not for the copy.

        Raises:
            InvalidArgument: no name of the notebook holds the buffer, or the system does not make
                buffers again.
            AccelError: the device takes no messages, or there is no room.
        """
        ref = self._handle(device, id)
        try:
            kept = ref.device.checkpoint(ref)
        except AccelError as error:
            self._say(device, id, "", error)
            raise

        def done() -> None:
            self._say(device, id, "is checkpointed: its contents survive a loss", kept.error)

        kept.add_waiter(done)

    def do_drop(self, device: str, space: str, name: str) -> None:
        """Have `%%gpu` cells forget an object; what uses it later raises StaleRef.

        Returns at once: it goes after what was sent before.

        Raises:
            InvalidArgument: the view is of something that is over.
            AccelError: the device takes no messages.
        """
        where = self._lab().device(device)
        dropped = where.run(ContextMemory.drop, in_context(ContextMemory), space, name)
        kept_objects.forget(where, space, name)

        def done() -> None:
            error = dropped.error
            outcome = "is dropped; what uses it now fails with StaleRef"
            self._said = f"Object {name} of {device} " + (
                outcome if error is None else f"was left as it is: {error}"
            )

        dropped.add_waiter(done)

    def _lab(self) -> "System":
        lab = cast("System | None", self.source.lab)
        if lab is None:
            raise InvalidArgument("what is shown is over: there is nothing to act upon")
        return lab

    def _handle(self, device: str, id_: int) -> Ref[Any]:
        ref = handle_in(notebook(), self._lab().device(device), id_)
        if ref is None:
            error = InvalidArgument("no name of the notebook holds its handle")
            self._say(device, id_, "", error)
            raise error
        return ref

    def _say(self, device: str, id_: int, done: str, error: AccelError | None) -> None:
        outcome = done if error is None else f"was left as it is: {error}"
        self._said = f"Buffer {short(id_)} of {device} {outcome}"


def vram(lab: Lab | Source, *, rate_hz: float = DEFAULT_HZ) -> VramView:
    """Return the memory of a system's devices; display it as the last value of a cell.

    In a Jupyter kernel with the `lab` extra it is a widget, elsewhere text or tables of what was
    seen last. Memory is looked at twice a second while there is such a view.

    Parameters:
        lab: the system, or a recording of one.
        rate_hz: how often it may update while something changes, at most 30.

    Raises:
        ValueError: the rate is not positive.
    """
    return show(VramView, lab, rate_hz=rate_hz)
