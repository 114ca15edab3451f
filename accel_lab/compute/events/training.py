"""What trainers do, as facts on the event stream."""

from typing import ClassVar

from accel_lab.actor.events import Event


class StepTrained(Event, frozen=True):
    """A step of a trainer is whole.

    `step` is how many are done with it, `loss` that of its batch before it, `rate` the learning
    rate, `norm` that of the gradients before they were clipped. Both `loss` and `norm` are None
    where they are not finite, and `norm` where nothing is clipped. `count` are the rows, or the
    tokens, of the batch, as `noun` says; it is empty where the batch tells neither.

    `seconds` is what the step took, the asking for its batch included, a snapshot not. Of that each
    of `ranks` was `exchanging_s` in collective operations that all ranks had begun, and `waiting_s`
    in one that it had begun, and another had not. These are by the notebook's clock, as
    `CollectiveEnded` has them. All else of the step is computing, copying, sending and idle time.

    `faults` are what cost attempts since the step that was told of before, `lost` those of the
    ranks that have another context since, and `again` is how many steps that were told of are done
    again, this one included.
    """

    is_frequent: ClassVar[bool] = True
    trainer: str
    step: int
    loss: float | None
    rate: float
    norm: float | None
    count: int
    noun: str
    seconds: float
    ranks: tuple[str, ...]
    exchanging_s: tuple[float, ...]
    waiting_s: tuple[float, ...]
    faults: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    again: int = 0
