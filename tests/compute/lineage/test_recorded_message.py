"""Recorded messages as a lineage sees them."""

from accel_lab.compute.lineage.recorded_message import Step, Steps, encode, entries_of
from accel_lab.compute.wire.codec import batch
from accel_lab.libraries.blas.library import Axpy


def axpy(seq: int, alpha: float, out: int) -> bytes:
    fields = {"x": 1, "y": 2, "alpha": alpha, "out": out}
    said = [Axpy.__struct_config__.tag, *(fields[name] for name in Axpy.__struct_fields__)]
    return encode((seq, 0, None, said, ("", "")))


def steps_of(*parts: bytes) -> list[Step]:
    step_of, entries = Steps().step, entries_of(batch(list(parts)))
    return [step_of(entry, data) for entry, data in zip(entries, parts, strict=True)]


def test_messages_that_differ_in_a_number_alone_do_the_same_to_buffers() -> None:
    """A cut of a long history looks at each effect once, not at each message."""
    steps = steps_of(*(axpy(seq, seq / 7, out=2) for seq in range(1, 1000)))
    assert len({id(step.effects) for step in steps}) < 10
    assert {step.data for step in steps} == {axpy(seq, seq / 7, out=2) for seq in range(1, 1000)}
    one, other = steps_of(axpy(1, 0.5, out=2), axpy(2, 0.5, out=1))
    assert (one.writes, other.writes) == ((2,), (1,))
