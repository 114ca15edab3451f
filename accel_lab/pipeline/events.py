"""What happens to pipelines, as facts on the event stream of their devices' system."""

from accel_lab.actor.events import Event


class StageRestarted(Event, frozen=True):
    """A stage restarts after a fault; `again` counts the items that it and others run again.

    `item` is the number of the one that met the fault, `attempt` counts the restarts in the
    strategy's window, 0 for a context that somebody had replaced, and `delay_s` is how long the
    stages rest before they begin.
    """

    pipeline: str
    stage: str
    item: int
    cause: str
    attempt: int
    again: int
    delay_s: float


class StageFailed(Event, frozen=True):
    """An item could not be computed; `skipped` says whether the pipeline goes on without it."""

    pipeline: str
    stage: str
    item: int
    cause: str
    skipped: bool
