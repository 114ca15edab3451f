"""What is printed and displayed, on its way to cells: what is left out, what is waited for."""

import threading

from accel_lab.actor.event_loop import EventLoop
from accel_lab.actor.events import EventStream
from accel_lab.compute.output.cell_origin import Origin
from accel_lab.compute.output.displays import Act, Cleared, Shown
from accel_lab.compute.output.output_queue import OutputQueue


def shown(text: str, name: str = "", *, update: bool = False) -> Shown:
    return Shown({"text/plain": text}, {}, {"display_id": name} if name else {}, update)


def written(*acts: Act) -> list[Act]:
    """Return what is shown of what one cell displays at once."""
    outputs, where = OutputQueue(EventLoop("never started"), EventStream()), Origin(1)
    found: list[Act] = []
    where.shows = found.append
    for act in acts:
        outputs.show(where, act)
    outputs.write()
    return found


def test_only_the_last_update_of_a_display_is_shown() -> None:
    a, b = shown("0", "a"), shown("0", "b")
    updates = [shown(str(k), name, update=True) for k in range(3) for name in "ab"]
    assert written(a, b, *updates) == [a, b, *updates[-2:]]


def test_what_is_cleared_at_once_is_not_shown() -> None:
    first, second = shown("1"), shown("2")
    update = shown("u", "of another cell", update=True)
    assert written(first, update, Cleared(wait=False)) == [update, Cleared(wait=False)]
    assert written(first, Cleared(wait=True), second) == [Cleared(wait=True), second]
    assert written(first, Cleared(wait=True)) == [first, Cleared(wait=True)], "it stays meanwhile"


def test_what_somebody_writes_is_waited_for() -> None:
    outputs, where = OutputQueue(EventLoop("never started"), EventStream()), Origin(1)
    writes, go_on = threading.Event(), threading.Event()

    def slowly(_: Act) -> None:
        writes.set()
        assert go_on.wait(60)

    where.shows = slowly
    outputs.show(where, shown("1"))
    writer = threading.Thread(target=outputs.write)
    writer.start()
    try:
        assert writes.wait(60)
        assert outputs.waiting, "so a cell does not end before its output"
    finally:
        go_on.set()
        writer.join()
    assert not outputs.waiting
