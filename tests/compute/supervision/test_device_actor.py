"""The supervisor's side of a loss."""

from typing import cast

import pytest

from accel_lab.compute.supervision.context_supervisor import ContextSupervisor
from accel_lab.compute.supervision.device_actor import ContextActor, Lost
from accel_lab.errors import ContextLost


def test_the_error_that_requests_hold_is_not_the_one_that_a_supervisor_clears() -> None:
    """A cell that had caught it and awaited the next answer was ended by `clear_frames`."""
    held = ContextLost("cpu0 lost its context", generation=3, code=700, name="ILLEGAL")
    try:
        raise held
    except ContextLost:
        traceback = held.__traceback__
    with pytest.raises(ContextLost) as caught:
        ContextActor(cast("ContextSupervisor", None)).lost(Lost(held))
    raised = caught.value
    assert raised is not held
    assert (str(raised), vars(raised)) == (str(held), vars(held))
    assert held.__traceback__ is traceback
    assert traceback not in _entries(raised)


def _entries(error: BaseException) -> list[object]:
    found: list[object] = []
    entry = error.__traceback__
    while entry is not None:
        found.append(entry)
        entry = entry.tb_next
    return found
