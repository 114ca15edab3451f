"""What code on one device prints and displays, put below the cell whose request it is."""

from accel_lab.compute.output.cell_origin import Origin
from accel_lab.compute.output.displays import Gathering
from accel_lab.compute.output.output_queue import OutputQueue
from accel_lab.compute.wire.codec import Display, Output


class OutputRouter:
    """Takes what comes over the wire of one device; the thread that reads it, does not block."""

    def __init__(self, device: str, outputs: OutputQueue) -> None:
        self._device = device
        self._outputs = outputs
        self._gathering = Gathering()

    def take(self, report: Output | Display, where: Origin | None) -> None:
        """Have it shown soon, behind what has come before; nowhere when it has no place."""
        if where is None:
            return
        if isinstance(report, Output):
            self._outputs.add(where, report.stream, report.text, self._device)
            return
        try:
            act = self._gathering.take(report)
        except Exception as error:  # noqa: BLE001 - what a module of the context's only has made
            text = f"accel_lab: this cannot be displayed: {error}\n"
            self._outputs.add(where, "stderr", text)
            return
        if act is not None:
            self._outputs.show(where, act)
