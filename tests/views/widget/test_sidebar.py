"""The sidebar without a browser: how busy devices are, who holds their memory, what a stop does."""

import time
from collections.abc import Iterator

import numpy as np
import pytest

from accel_lab import views
from accel_lab.compute.events.samples import Block, MemorySampled, Slice, TreeSampled, WorkTraced
from accel_lab.errors import Cancelled, InvalidArgument
from accel_lab.system import System
from accel_lab.views.scene.scene import Scene
from accel_lab.views.sidebar import SidebarView
from accel_lab.views.widget.view import State
from tests.views.made_up import GIB
from tests.views.made_up import lab as made_up

WAIT_S = 20.0
AT = 1_000.0


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with System("host", name="real") as lab:
        yield lab.ready()


def slice_(start: float, end: float | None, seq: int = 1) -> Slice:
    return Slice(seq, "Gemm", "blas", "kernel", start, end)


def folded(*seen: WorkTraced | MemorySampled) -> State:
    """Return the state of the first device of a recorded system, as it was at `AT`."""
    source = made_up(1)
    scene = Scene()
    scene.add(TreeSampled(at=AT, root=source.tree()))
    for one in seen:
        scene.add(one)
    view = SidebarView(source)
    view.source = type("Past", (), {"lab": None})()
    state: State = view.fold(scene)["devices"][0]
    return state


def traced(*done: Slice, running: tuple[Slice, ...] = ()) -> WorkTraced:
    return WorkTraced(at=AT, device="gpu0", generation=1, done=done, running=running)


def block(nbytes: int, *kept_by: str, id_: int = 1) -> Block:
    return Block((id_,), 0, nbytes, f"Gemm #{id_}", "float32", (nbytes // 4,), kept_by)


def memory(*blocks: Block, used: int = 0) -> MemorySampled:
    return MemorySampled(
        at=AT, device="gpu0", generation=1, used_bytes=used, total_bytes=GIB, blocks=blocks
    )


@pytest.mark.parametrize(
    ("done", "running", "share"),
    [
        ((), (), 0.0),
        ((slice_(AT - 0.5, AT - 0.25),), (), 0.25),
        ((slice_(AT - 9, AT - 0.75), slice_(AT - 0.75, AT - 0.5)), (), 0.5),
        ((slice_(AT - 0.8, AT - 0.4), slice_(AT - 0.6, AT - 0.3)), (), 0.5),  # they overlap
        ((), (slice_(AT - 60, None),), 1.0),
        ((slice_(AT - 5, AT - 4),), (), 0.0),
    ],
)
def test_busy_is_the_share_of_the_last_second_with_work_of_any_stream(
    done: tuple[Slice, ...], running: tuple[Slice, ...], share: float
) -> None:
    assert folded(traced(*done, running=running))["busy"] == pytest.approx(share, abs=1e-3)


def test_thousands_of_short_messages_are_as_busy_as_the_tree_says() -> None:
    step = 1 / 4_000
    done = [slice_(AT - 1 + n * step, AT - 1 + (n + 0.8) * step, n) for n in range(4_000)]
    assert folded(traced(*done))["busy"] == pytest.approx(0.8, abs=1e-3)


def test_the_share_of_work_is_not_told_where_messages_were_not_traced() -> None:
    untraced = Slice(120, "", "blas", "untraced", AT - 0.9, AT - 0.1)
    assert folded(traced(untraced))["busy"] is None
    lost = WorkTraced(at=AT, device="gpu0", generation=1, done=(), running=(), dropped=7)
    assert folded(lost)["busy"] is None


def test_what_runs_is_told_the_longest_first() -> None:
    state = folded(traced(running=(slice_(AT - 1, None, 7), slice_(AT - 3, None, 5))))
    assert [one["what"] for one in state["running"]] == ["Gemm #5", "Gemm #7"]
    assert state["running"][0] == {"what": "Gemm #5", "on": "blas", "since": AT - 3}


def test_arrays_that_a_running_message_works_on_are_not_left_out() -> None:
    sample = memory(block(400, "y"), used=1_400)
    running = traced(running=(slice_(AT - 3, None),))
    assert folded(running, sample)["holders"] == [
        ["(in use now)", 1_000, "several"],
        ["y", 400, "float32[100]"],
    ]
    assert folded(sample)["holders"] == [["y", 400, "float32[100]"]]


def test_names_that_hold_memory_are_summed_and_the_largest_comes_first() -> None:
    blocks = (block(400, "y"), block(40, "x", "z"), block(4000, id_=9), block(800, "y"))
    state = folded(memory(*blocks))
    assert state["holders"] == [
        ["(Gemm #9)", 4000, "float32[1000]"],
        ["y", 1200, "several"],
        ["x, z", 40, "float32[10]"],
    ]


def test_text_and_table_say_the_same(system: System) -> None:
    x = system.devices[0].put(np.ones((64, 64))).result()
    view = views.sidebar(system)
    state = view.drawn()
    for told in ("real: 1 device", "running", "no faults", "32 KiB float64[64, 64]"):
        assert told in view.text(state)
        assert told.split(" float")[0] in view.html(state)
    assert x.is_valid


def test_a_stop_takes_back_what_any_cell_has_sent(system: System) -> None:
    """What runs is interrupted, what waits behind it never runs, and the context lives."""
    device = system.devices[0]
    generation = device.generation
    started = time.monotonic()
    running, waiting = device.run(time.sleep, 60.0), device.run(pow, 2, 3)
    SidebarView(system).do_stop(device.name)
    for reply in (running, waiting):
        with pytest.raises(Cancelled):
            reply.result(WAIT_S)
    assert time.monotonic() - started < WAIT_S
    assert device.run(pow, 2, 5).result(WAIT_S) == 32
    assert device.generation == generation
    system.check()


def test_a_replace_ends_what_does_not_hear_a_stop(system: System) -> None:
    device = system.devices[0]
    generation = device.generation
    SidebarView(system).do_replace(device.name)
    assert device.run(pow, 2, 6).result(WAIT_S) == 64
    assert device.generation == generation + 1


def test_a_command_names_a_device_of_a_system() -> None:
    source = made_up(1)
    with pytest.raises(InvalidArgument, match="lab is only looked at"):
        SidebarView(source).do_stop("gpu0")
