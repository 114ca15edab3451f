"""The timeline of a part of a session, which is over."""

from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.events.samples import Slice
from accel_lab.views.past.still import Still
from accel_lab.views.timeline import TimelineView, timeline
from tests.views.work import work

SLICES = [
    Slice(7, "Gemm", "blas", "kernel", 1000.0, 1000.25),
    Slice(8, "R2C", "fft", "kernel", 1000.25, 1000.5),
]


def still() -> Still:
    lost = ContextLost(device="gpu0", generation=1, cause="why", in_flight=0, at=1000.3)
    return Still("lab", "cell 12", [work("gpu0", SLICES), lost])


def test_the_state_says_which_part_it_is_and_has_only_that() -> None:
    state = TimelineView(still()).sample()
    assert (state["name"], state["of"], state["closed"]) == ("lab", "cell 12", True)
    assert state["devices"] == ["gpu0"]
    assert state["span"] == [1000.0, 1000.5]
    assert [(row["stream"], row["count"]) for row in state["rows"]] == [("blas", 1), ("fft", 1)]
    assert [kind for _, _, kind, _ in state["marks"]] == ["fault"]


def test_it_reads_as_that_part_and_not_as_a_system_that_was_closed() -> None:
    assert str(timeline(still())).splitlines()[0] == "lab, cell 12: 2 slices in 500 ms, 1 fault"


def test_nothing_more_comes() -> None:
    source = still()
    called: list[None] = []
    source.on_news(lambda: called.append(None))()
    source.want(source, {"work"})
    assert source.look() is source.look()
    assert source.ended
    assert source.look().closed
    assert called == []
