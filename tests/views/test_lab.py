"""The lab view without a browser: what its parts draw from, and how small it stays."""

import struct
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from accel_lab import blas, views
from accel_lab.compute.events.lifecycle import CircuitOpened, ContextLost
from accel_lab.compute.events.samples import Slice, TreeSampled, WorkTraced
from accel_lab.errors import InvalidArgument
from accel_lab.system import System
from accel_lab.views.lab import PARTS, CompactView, LabView
from accel_lab.views.lab_lines import lines_of
from accel_lab.views.scene.scene import Scene
from tests.views.made_up import GIB
from tests.views.made_up import lab as made_up
from tests.views.work import Recorded, work

SMALL = 16 * 1024
SNAPSHOT = 20 * 1024
"""How large all parts together may be as JSON."""
WAIT_S = 20.0


@pytest.fixture(scope="module")
def system() -> Iterator[System]:
    with System("host", name="real") as lab:
        yield lab


def settled(view: LabView, wanted: Any) -> dict[str, Any]:
    """Look until something is seen, as the publisher does."""
    end = time.monotonic() + WAIT_S
    while not wanted(state := view.sample()):
        assert time.monotonic() < end, state
        time.sleep(0.02)
    return state


def test_each_part_has_the_state_of_its_own_view() -> None:
    source = made_up(1)
    view = LabView(source)
    state = view.sample()
    named = ["tree", "supervision", "timeline", "kernels", "vram", "health", "closed"]
    assert list(state) == named
    assert state["tree"] == views.tree(source).sample()
    assert state["vram"] == views.vram(source).sample()


def test_every_part_is_drawn_as_text_and_as_a_table() -> None:
    source = made_up(1)
    view = LabView(source)
    state = view.sample()
    for name in state.keys() - {"closed"}:
        part = view.parts[name]
        assert part.text(state[name]) in view.text(state)
        assert part.html(state[name]) in view.html(state)
    assert not {"<style", "<script", "style="} & set(view.html(state).split())


def test_columns_of_all_parts_travel_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    source = made_up(1)
    view = LabView(source)
    scene = Scene()
    monkeypatch.setattr(view.parts["timeline"], "pack", lambda _: b"")
    assert view.pack(scene) == b""
    monkeypatch.setattr(view.parts["timeline"], "pack", lambda _: b"slices--")
    monkeypatch.setattr(view.parts["health"], "pack", lambda _: b"readings--------")
    packed = view.pack(scene)
    assert struct.unpack_from("<12d", packed) == (0, 0, 8, 0, 0, 16, 0, 0, 0, 0, 0, 0)
    assert packed[96:] == b"slices--readings--------"


def test_the_tree_says_of_memory_what_the_blocks_do() -> None:
    with System("host", name="drawn").ready() as lab:
        kept = []
        for buffers in range(1, 4):
            kept.append(lab.devices[0].put(np.ones((64, 64), np.float32)).result())
            state = LabView(lab).drawn()
            device = state["tree"]["root"]["children"][0]
            assert device["used_bytes"] == buffers * SMALL
            assert device["used_bytes"] == state["vram"]["devices"][0]["used"]


def test_a_command_reaches_the_part_that_it_is_for(system: System) -> None:
    view = LabView(system)
    lost = system.events.published
    view.do_part("supervision", {"do": "inject", "device": "cpu0", "fault": "kill"})
    system.events.wait_for(ContextLost, WAIT_S, since=lost)
    with pytest.raises(InvalidArgument, match="no part 'nonsense'"):
        view.do_part("nonsense", {"do": "reset"})
    with pytest.raises(InvalidArgument, match="no command 'nonsense'"):
        view.do_part("tree", {"do": "nonsense"})


def test_one_journal_moves_all_parts_into_the_past_and_back(system: System) -> None:
    view = LabView(system)
    gpu = system.devices[0]
    a = gpu.put(np.ones((8, 8), "f4"))
    blas.gemm(a, a).result()
    system.flush()
    settled(view, lambda state: state["journal"]["count"] >= 2)
    assert settled(view, lambda state: "strip" in state["vram"]["devices"][0])["vram"]["acts"]
    view.do_part("journal", {"do": "seek", "position": 1})
    past = view.sample()
    assert past["journal"]["live"] is False
    assert "acts" not in past["vram"], "the past has no buttons"
    note = f"REPLAY: entry 1 of {past['journal']['count']:,} · "
    assert str(view).startswith(note)
    data, _ = view._repr_mimebundle_()
    assert data["text/plain"].startswith(note)
    assert data["text/html"].startswith(f"<p><strong>{note}")
    view.do_part("journal", {"do": "live"})
    assert view.sample()["vram"]["acts"]
    assert "REPLAY" not in str(view)


def test_a_system_without_a_journal_has_the_other_parts() -> None:
    with System("host", journal=None) as lab:
        assert "journal" not in LabView(lab).sample()


def test_a_busy_system_fits_into_a_small_message(system: System) -> None:
    view = LabView(system)
    gpu = system.devices[0]
    a = gpu.put(np.ones((64, 64), "f4"))
    kept = [blas.gemm(a, a) for _ in range(40)]
    kept[-1].result()
    lost = system.events.published
    system.inject("kill")
    system.events.wait_for(ContextLost, WAIT_S, since=lost)
    blas.gemm(a, a).result()
    system.flush()
    state = settled(
        view,
        lambda state: (
            state["journal"]["count"] > 40
            and state["vram"]["devices"][0].get("strip")
            and state["health"]["sources"]
        ),
    )
    sizes = {name: len(msgspec.json.encode(part)) for name, part in state.items()}
    assert sum(sizes.values()) < SNAPSHOT, sizes
    assert len(kept) == 40


def test_the_compact_view_is_the_tree_and_a_line_for_each_of_the_rest() -> None:
    source = made_up(2)
    source.devices[0].in_flight = 3
    source.devices[1].used_bytes = int(137 * GIB)
    view = views.lab(source, compact=True)
    assert type(view) is CompactView
    state = view.sample()
    assert state["tree"] == views.tree(source).sample()
    assert state["lines"] == [
        ["Memory", "gpu0 1.2 / 139 GiB, gpu1 137 / 139 GiB", "bad"],
        ["Work", "3 in flight", "busy"],
        ["Supervision", "no faults", "ok"],
    ]
    assert str(view).endswith(
        "Memory:      gpu0 1.2 / 139 GiB, gpu1 137 / 139 GiB\n"
        "Work:        3 in flight\n"
        "Supervision: no faults"
    )
    assert '<th scope="row">Work</th><td>3 in flight</td>' in view.html(state)


def test_what_a_device_is_at_for_long_is_said_above_all_parts_and_in_the_compact_view() -> None:
    """The longest first."""
    scene = Scene()
    source = made_up(2)
    source.devices[0].in_flight = 2
    scene.add(TreeSampled(root=source.tree(), at=1000.0))
    for device, starts in (("gpu0", (996.5, 999.8)), ("gpu1", (934.5, 996.0))):
        running = [Slice(n, "spin", "blas", "kernel", at, None) for n, at in enumerate(starts)]
        scene.add(work(device, running=running))
    view, compact = LabView(Recorded(scene)), CompactView(Recorded(scene))
    state = view.sample()
    assert state["running"] == {"what": "spin #0 on gpu1/blas", "how_long": "1 min 5 s", "more": 2}
    line = "▶ spin #0 on gpu1/blas · 1 min 5 s +2 more"
    assert view.text(state).startswith(f"{line}\n\nlab: ")
    assert view.html(state).startswith(f"<p>{line}</p><table>")
    assert compact.sample()["lines"][1] == ["Work", f"{line}, 2 in flight", "busy"]
    assert f"Work:        {line}, 2 in flight" in str(compact)
    for device in ("gpu0", "gpu1"):
        scene.add(work(device))
    assert "running" not in view.sample()
    assert compact.sample()["lines"][1] == ["Work", "2 in flight", "busy"]


def test_the_compact_view_alone_has_work_traced() -> None:
    source = made_up(1)
    seen: list[bool] = []

    def look(*, memory: bool, work: bool) -> list[WorkTraced]:
        del memory
        seen.append(work)
        one = Slice(3, "spin", "blas", "kernel", time.time() - 7.1, None)
        return [WorkTraced(device="gpu0", generation=1, done=(), running=(one,))]

    source.look = look  # type: ignore[method-assign,assignment]
    lines = CompactView(source).sample()["lines"]
    assert lines[1] == ["Work", "▶ spin #3 on gpu0/blas · 7 s", "busy"]
    assert seen == [True]


def test_the_line_of_supervision_tells_the_last_fault() -> None:
    scene = Scene()
    source = made_up(1)
    scene.add(TreeSampled(root=source.tree()))
    scene.add(CircuitOpened(device="gpu0", cause="it broke"))
    *_, line = lines_of(scene)
    assert line.text.startswith("1 fault; the last: gpu0 at ")
    assert line.tone == "bad"


def test_many_devices_are_counted_in_the_compact_view() -> None:
    scene = Scene()
    source = made_up(9)
    scene.add(TreeSampled(root=source.tree()))
    assert next(lines_of(scene)).text.endswith("and 5 more")


def test_a_system_shows_its_compact_view(system: System) -> None:
    data, _ = system._repr_mimebundle_(include=None, exclude=None)
    assert set(data) == {"text/plain", "text/html"}
    assert data["text/plain"].startswith("real: 1 device\n")
    assert "\nSupervision: " in data["text/plain"]
    assert repr(system).startswith("<System real: <Device cpu0")


def test_the_running_systems_are_known_by_name(system: System) -> None:
    from accel_lab.open_systems import running

    assert system in running()
    other = System("host", name="another")
    assert [one.name for one in running() if one in {system, other}] == ["real", "another"]
    other.close()
    assert other not in running()


def test_a_part_that_wants_samples_has_them_taken() -> None:
    source = made_up(1)
    seen: list[tuple[bool, bool]] = []

    def look(*, memory: bool, work: bool) -> list[WorkTraced]:
        seen.append((memory, work))
        one = Slice(1, "Gemm", "blas", "kernel", 1.0, 2.0)
        return [WorkTraced(device="gpu0", generation=1, done=(one,), running=())]

    source.look = look  # type: ignore[method-assign,assignment]
    assert LabView(source).sample()["timeline"]["traced"] == 1
    assert seen[-1] == (True, True)


def test_the_parts_are_in_the_order_of_the_front_end() -> None:
    from accel_lab.views.widget.assets import _read

    text = _read("lab/parts.js")
    places = [text.index(f'name: "{kind.name}"') for kind in PARTS]
    assert places == sorted(places)
