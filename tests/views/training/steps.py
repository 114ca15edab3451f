"""Made-up steps of a trainer on two ranks."""

from collections.abc import Collection, Iterator

from accel_lab.compute.events.training import StepTrained

AT = 1_700_000_000.0
RANKS = ("cpu0", "cpu1")
FAULT = "DependencyFailed: operand 764 could not be rebuilt: it is a part of a message to several"


def step(
    number: int,
    *,
    loss: float | None = None,
    trainer: str = "T",
    killed: bool = False,
    again: int = 0,
) -> StepTrained:
    """Return a step of 40 ms, of which the second rank waits for 10."""
    return StepTrained(
        at=AT + number + 1000 * again,
        trainer=trainer,
        step=number,
        loss=3 / number if loss is None else loss,
        rate=0.01 * 0.99**number,
        norm=1 + 1 / number,
        count=60,
        noun="rows",
        seconds=0.04,
        ranks=RANKS,
        exchanging_s=(0.006, 0.006),
        waiting_s=(0.0, 0.01),
        faults=(FAULT,) if killed else (),
        lost=("cpu1",) if killed else (),
        again=again,
    )


def steps(until: int, *, trainer: str = "T", killed: Collection[int] = ()) -> Iterator[StepTrained]:
    """Yield the steps up to one; those in `killed` were done again."""
    for number in range(1, until + 1):
        yield step(number, trainer=trainer, killed=number in killed)
