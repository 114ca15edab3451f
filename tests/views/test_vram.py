"""The memory view without a browser: what is drawn of a scene, and what its buttons do."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import array, blas, memory, views
from accel_lab.actor.reply import Reply
from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.events.samples import (
    Block,
    KeptObject,
    LevelsSampled,
    MemorySampled,
    SystemEnded,
    TreeSampled,
    WorkTraced,
)
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.display.clock import time_of_day
from accel_lab.errors import AccelError, InvalidArgument, StaleRef
from accel_lab.system import System
from accel_lab.views.scene import names as names_
from accel_lab.views.scene.observer import observer_of
from accel_lab.views.scene.scene import Scene
from accel_lab.views.vram import (
    LISTED,
    OBJECTS,
    PADDING_BYTES,
    ROWS,
    VramView,
    html,
    state_of,
    text,
)
from accel_lab.views.vram.history import STEPS, history
from accel_lab.views.widget import commands
from tests.views.made_up import GIB, Device, Lab, lab
from tests.views.work import Recorded

MIB = 2**20
USED = lab(1).devices[0].used_bytes or 0
WAIT_S = 20.0


def block(id_: int, address: int = 0, nbytes: int = MIB, **more: Any) -> Block:
    fields: dict[str, Any] = {"owner": "Gemm #1", "dtype": "float32", "shape": (512, 512)} | more
    return Block((id_,), address, nbytes, **fields)


def sample(*blocks: Block, device: str = "gpu0", **more: Any) -> MemorySampled:
    used = more.pop("used_bytes", sum(one.nbytes for one in blocks))
    fields: dict[str, Any] = {"generation": 1, "total_bytes": 139 * GIB} | more
    return MemorySampled(device=device, used_bytes=used, blocks=blocks, **fields)


def scene(*samples: MemorySampled, devices: int = 1) -> Scene:
    made = Scene()
    made.add(TreeSampled(root=lab(devices).tree(), at=1000.0))
    made.add(LevelsSampled(device="gpu0", levels=((1000.0, USED),), at=1000.0))
    for one in samples:
        made.add(one)
    return made


def device(seen: Scene) -> dict[str, Any]:
    found: dict[str, Any] = state_of(seen)["devices"][0]
    return found


class Slow(Lab):
    """Its devices tell of their memory with the third look, as it is then."""

    looks = 0

    def look(self, *, memory: bool, work: bool) -> list[MemorySampled | WorkTraced]:
        del memory, work
        self.looks += 1
        return [sample(block(1), block(2, MIB))] if self.looks % 3 == 0 else []


def test_a_view_that_nobody_has_shown_draws_what_there_is() -> None:
    slow = Slow([Device("gpu0")])
    for drawn in (str, repr, lambda view: view._repr_mimebundle_()[0]["text/html"]):
        view = VramView(slow)
        assert "Gemm #1" in drawn(view), "not: not seen yet"
    before = slow.looks
    str(VramView(slow))
    assert slow.looks == before + 3, "it is as it is now, not as it was"


def test_a_device_that_does_not_tell_is_not_awaited_for_long() -> None:
    assert "gpu0: not seen yet" in str(VramView(lab()))


def test_a_fold_has_whatever_changed_since_the_last() -> None:
    seen, made_up = scene(), lab(2)
    view = VramView(Recorded(seen))
    changes: list[Callable[[], object]] = [
        lambda: seen.add(sample(block(1))),
        lambda: seen.add(sample(block(1))),
        lambda: seen.add(TreeSampled(root=made_up.tree())),
        made_up.restart,
        lambda: seen.add(TreeSampled(root=made_up.tree())),
        lambda: seen.add(sample(block(2, kept_by=("y",)), generation=2, stale=((1, ("x",)),))),
        lambda: seen.add(sample(block(3), device="gpu1")),
        lambda: seen.add(SystemEnded(name="lab")),
    ]
    for change in changes:
        change()
        assert view.fold(seen) == state_of(seen)
    other = scene(sample(block(9)))
    assert view.fold(other) == state_of(other)


def test_blocks_come_by_address_with_the_gaps_between_them() -> None:
    here = 1 << 40
    seen = scene(
        sample(
            block(3, here + 2 * MIB + PADDING_BYTES),
            block(1, here, kept_by=("x",)),
            block(2, here + MIB + PADDING_BYTES - 1, nbytes=MIB - PADDING_BYTES + 1),
            free_bytes=100 * GIB,
        )
    )
    assert state_of(seen) == {
        "lab": "lab",
        "devices": [
            {
                "name": "gpu0",
                "state": "running",
                "generation": 1,
                "used": 3 * MIB - PADDING_BYTES + 1,
                "total": 139 * GIB,
                "room": 100 * GIB,
                "history": {"at": 1000.0, "peak": USED, "peak_at": 1000.0, "steps": [[0.0, 100]]},
                "count": 3,
                "strip": [
                    {
                        "ids": [1],
                        "owner": "Gemm #1",
                        "what": "float32[512, 512]",
                        "bytes": MIB,
                        "kept": ["x"],
                    },
                    {
                        "ids": [2],
                        "owner": "Gemm #1",
                        "what": "float32[512, 512]",
                        "bytes": MIB - PADDING_BYTES + 1,
                    },
                    {
                        "ids": [3],
                        "owner": "Gemm #1",
                        "what": "float32[512, 512]",
                        "bytes": MIB,
                        "gap": PADDING_BYTES,
                    },
                ],
            }
        ],
        "kinds": [("Gemm", 3 * MIB - PADDING_BYTES + 1)],
        "closed": False,
    }


sizes = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 1 << 40)), max_size=300)


@given(sizes, st.integers(0, 50))
def test_the_pieces_add_up_to_what_is_in_use(layout: list[tuple[int, int]], unlisted: int) -> None:
    blocks, address = [], 1 << 35
    for id_, (gap, nbytes) in enumerate(layout):
        address += gap
        blocks.append(block(id_, address, nbytes))
        address += nbytes
    used = sum(one.nbytes for one in blocks) + unlisted * 100
    drawn = device(scene(sample(*reversed(blocks), unlisted=unlisted, used_bytes=used)))
    strip = drawn["strip"]
    assert sum(piece["bytes"] for piece in strip) == used
    assert sum(piece.get("small", 1) for piece in strip) == drawn["count"] == len(blocks) + unlisted
    listed = [piece for piece in strip if "ids" in piece]
    assert len(listed) == min(len(blocks), LISTED)
    assert [piece["ids"][0] for piece in listed] == sorted(piece["ids"][0] for piece in listed)
    smallest = min((piece["bytes"] for piece in listed), default=0)
    hidden = {one.nbytes for one in blocks if [one.ids[0]] not in [p["ids"] for p in listed]}
    assert all(nbytes <= smallest for nbytes in hidden)


def test_a_state_is_small_however_many_buffers_there_are() -> None:
    owners = ["Gemm", "Allocate", "R2C", "Draw", "Elementwise"]
    samples = [
        sample(
            *(
                block(i, i << 22, nbytes=MIB + i, owner=f"{owners[i % 5]} #{i}", kept_by=("x",))
                for i in range(2000)
            ),
            device=f"gpu{gpu}",
            unlisted=500,
        )
        for gpu in range(8)
    ]
    drawn = state_of(scene(*samples, devices=8))
    assert len(json.dumps(drawn, separators=(",", ":"))) < 24 * 1024
    assert [one["count"] for one in drawn["devices"]] == [2500] * 8


def test_devices_that_were_not_seen_are_there_and_old_samples_say_so() -> None:
    source = lab(2)
    source.devices[0].generation = 3
    seen = Scene()
    seen.add(TreeSampled(root=source.tree()))
    seen.add(sample(block(1), generation=2))
    old, unseen = state_of(seen)["devices"]
    assert (old["generation"], old["now"]) == (2, 3)
    assert unseen == {"name": "gpu1", "state": "running"}
    assert "gpu1: not seen yet" in text(state_of(seen))


def test_lost_blocks_are_drawn_while_a_name_holds_them() -> None:
    seen = scene(sample(block(1), block(2, MIB)))
    seen.add(sample(block(2), generation=2, stale=((1, ("x", "y[0]")),)))
    drawn = device(seen)
    assert [piece["ids"] for piece in drawn["strip"]] == [[2]]
    assert (drawn["lost_in"], drawn["lost_count"], drawn["lost_bytes"]) == (1, 1, MIB)
    assert [(piece["ids"], piece["kept"]) for piece in drawn["lost"]] == [([1], ["x", "y[0]"])]
    assert "1 block of generation 1 lost but kept" in text(state_of(seen))
    seen.add(sample(block(2), generation=2))
    assert "lost" not in device(seen)
    seen.add(sample(block(2), generation=2, stale=((1, ("x",)),)))
    assert device(seen)["lost"][0]["kept"] == ["x"]


def test_text_names_the_largest_blocks_and_counts_the_others() -> None:
    blocks = [block(i, i * MIB, nbytes=i << 10) for i in range(1, 31)]
    blocks[29] = block(30, 30 * MIB, 8 * MIB, owner="R2C #9", kept_by=("x", "layers[3]"))
    drawn = text(state_of(scene(sample(*blocks, unlisted=5, free_bytes=100 * GIB))))
    lines = drawn.splitlines()
    assert lines[:5] == [
        "Memory of lab",
        "gpu0: 8.4 MiB / 139 GiB in use in 35 blocks of generation 1; a new block may",
        f"    have 100 GiB at most; 1.2 GiB at most, {time_of_day(1000.0)}",
        "Device  Variable        Size  Array              Made by",
        "gpu0    x, layers[3]   8 MiB  float32[512, 512]  R2C #9",
    ]
    assert lines[5].startswith("gpu0    (Gemm #1)     29 KiB"), "what no name keeps has its maker's"
    assert max(map(len, lines)) <= 80
    assert len(lines) == 4 + ROWS + 1
    assert lines[-1] == "15 more blocks not listed"


def test_a_block_says_of_which_kind_its_memory_is() -> None:
    seen = scene(
        sample(block(1, memory="managed"), block(2, MIB, memory="pool"), block(3, 2 * MIB))
    )
    state = state_of(seen)
    assert [one.get("memory") for one in device(seen)["strip"]] == ["managed", "pool", None]
    lines = text(state).splitlines()
    assert [line.split("MiB")[-1].split()[0] for line in lines[-3:]] == [
        "managed",
        "float32[512,",
        "float32[512,",
    ]
    assert max(map(len, lines)) <= 80
    _, *rows = Tables(html(state)).tables[1]
    what = "float32[512, 512]"  # of the last one there is an empty cell before it
    assert [row[3] for row in rows] == ["Memory", "managed", "pool", what]


class Tables(HTMLParser):
    """Checks that tags nest, and keeps the rows of each table."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.tables: list[list[list[str]]] = []
        self.feed(markup)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"scope"}
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "table":
            self.tables.append([])
        if tag in {"tr", "caption"}:
            self.tables[-1].append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.tables[-1][-1].append(data)


def test_the_tables_have_captions_heads_and_no_style() -> None:
    blocks = (block(1, kept_by=("<script>",)), block(2, MIB, 2 * MIB))
    page = Tables(html(state_of(scene(sample(*blocks)))))
    assert page.tags == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    devices, listed = page.tables
    assert devices[0] == ["Memory of lab"]
    assert devices[2] == ["gpu0", "1", "3 MiB / 139 GiB", "1.2 GiB", "2", "not known"]
    assert listed[0] == ["Blocks, the largest first"]
    what = "float32[512, 512]"
    assert listed[2] == ["gpu0", "(Gemm #1)", "2 MiB", what, "Gemm #1", "1", "2"]
    assert listed[3][1] == "<script>"


def test_objects_of_cells_have_a_table_of_their_own() -> None:
    objects = [
        KeptObject(f"o{i}", "s", "list", (i + 1) << 10, 1, (f"%%gpu o{i}",)) for i in range(40)
    ]
    objects.append(KeptObject("<m>", "s", "torch.nn.Linear", 2 * MIB, 1, ("<m>", "%%gpu <m>")))
    largest = tuple(sorted(objects, key=lambda one: -one.nbytes))
    state = state_of(scene(sample(block(1), objects=largest)))
    assert [one["name"] for one in state["devices"][0]["objects"]][:2] == ["<m>", "o39"]
    assert len(state["devices"][0]["objects"]) == OBJECTS
    lines = text(state).splitlines()
    assert lines[5:8] == [
        "Objects of %%gpu cells; what they hold may be in blocks, too",
        "Device  Object  Type               Size  Gen  Kept by",
        "gpu0    <m>     torch.nn.Linear   2 MiB  1    <m>, %%gpu <m>",
    ]
    assert len(lines) == 7 + ROWS + 1
    assert lines[-1] == "21 more objects not listed"
    _, _, drawn = Tables(html(state)).tables
    assert drawn[0] == [f"{lines[5]}. {lines[-1]}"]
    assert drawn[2] == ["gpu0", "<m>", "torch.nn.Linear", "2 MiB", "1", "<m>, %%gpu <m>"]
    alone = Tables(html(state_of(scene(sample(objects=largest[:1])))))
    assert len(alone.tables) == 2


def test_no_line_is_wider_than_80_characters() -> None:
    name, kind = "weights_of_the_second_layer", "a_kernel_with_a_long_name_of_its_own"
    wide = block(
        1, nbytes=GIB, owner=f"{kind} #123", shape=(1024, 1024, 128, 8), kept_by=(name, "again")
    )
    one = KeptObject(name, "s", "torch.nn.modules.container.Sequential", MIB, 1, (name, "%%gpu x"))
    lines = text(state_of(scene(sample(wide, free_bytes=GIB, objects=(one,))))).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("gpu0    weights_of_the_seco…") for line in lines)


def test_the_history_has_every_peak_and_marks_faults() -> None:
    seen = Scene()
    seen.add(TreeSampled(root=lab(1).tree()))
    for second in range(600):
        used = 40 * MIB if second == 301 else (10 + second % 2) * MIB
        level = 1000.0 + second, used
        seen.add(LevelsSampled(device="gpu0", levels=(level,)))
    seen.add(ContextLost(device="gpu0", generation=1, cause="SIGKILL", in_flight=0, at=1400.0))
    asked = ContextLost(device="gpu0", generation=2, cause="", in_flight=0, at=1500.0, asked=True)
    seen.add(asked)
    seen.add(sample(block(1)))
    told = device(seen)["history"]
    assert (told["at"], told["peak"], told["peak_at"]) == (1000.0, 40 * MIB, 1301.0)
    assert [level for _, level in told["steps"]].count(100) == 1
    assert told["faults"] == [400.0], "what was asked for is no fault"
    assert len(told["steps"]) <= STEPS + 1
    assert told["steps"][-1][1] == 28
    assert f"40 MiB at most, {time_of_day(1301.0)}" in " ".join(text(state_of(seen)).split())


@given(st.lists(st.tuples(st.floats(0, 1e4), st.integers(0, 1 << 40)), min_size=1, max_size=200))
def test_a_history_ends_where_memory_is_and_never_hides_the_peak(
    changes: list[tuple[float, int]],
) -> None:
    levels = sorted(changes, key=itemgetter(0))
    told = history(levels, [])
    peak = max(used for _, used in levels)
    if not peak:
        assert told is None
        return
    assert told is not None
    steps = told["steps"]
    assert max(level for _, level in steps) == 100
    assert steps[-1][1] == -(-100 * levels[-1][1] // peak)
    assert [after for after, _ in steps] == sorted(after for after, _ in steps)
    assert len(steps) <= STEPS + 1


def test_what_the_host_keeps_is_told_apart() -> None:
    seen = Scene()
    moved = (("moved from the device for want of room", 8 * MIB),)
    kept_by_host = (("kept for recovery", 62 * MIB), ("in the journal", 3 * MIB))
    root = lab(1).tree()
    device_ = msgspec.structs.replace(root.children[0], kept=moved)
    root = msgspec.structs.replace(root, kept=kept_by_host, children=(device_,))
    seen.add(TreeSampled(root=root))
    seen.add(sample(block(1)))
    state = state_of(seen)
    assert state["kept"] == [["kept for recovery", 62 * MIB], ["in the journal", 3 * MIB]]
    assert state["devices"][0]["kept"] == [["moved from the device for want of room", 8 * MIB]]
    said = " ".join(text(state).split())
    assert (
        "On the host, not in device memory: 62 MiB kept for recovery, 3 MiB in the journal" in said
    )
    assert "8 MiB of gpu0 moved from the device for want of room" in said
    assert "62 MiB kept for recovery" in html(state)


def test_a_real_system_says_what_it_keeps_for_recovery(host: System) -> None:
    gpu = host.devices[0]
    kept_ = gpu.put(np.ones(1 << 20, np.uint8)).result()
    host.flush()
    state = VramView(host).sample()
    words = dict(state["kept"])
    assert words["kept for recovery"] >= 1 << 20
    assert words["in the journal (may be the same arrays)"] > 0
    assert kept_.is_valid


def test_nothing_to_show_says_so() -> None:
    assert text(state_of(Scene())) == "Memory of no system"
    seen = scene(sample())
    seen.add(SystemEnded(name="lab"))
    drawn = text(state_of(seen))
    assert drawn.startswith("Memory of lab (closed)\ngpu0: 0 / 139 GiB in use in 0 blocks")
    assert len(Tables(html(state_of(seen))).tables) == 1


def test_a_recording_has_no_buttons() -> None:
    class Recording:
        """A source without a lab."""

        def __init__(self) -> None:
            self.lock = observer_of(source).lock
            self.lab = None
            self.ended = False

        def look(self) -> Scene:
            return scene(sample(block(1)))

        def want(self, holder: object, wants: object) -> None:
            del holder, wants

        def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
            return callback

    source = lab(1)
    view = VramView(Recording())
    assert "acts" not in view.sample()
    with pytest.raises(InvalidArgument, match="is over"):
        view.do_free("gpu0", 1)
    assert VramView(source).sample()["acts"] is True


# A real system.


@pytest.fixture
def host() -> Iterator[System]:
    with System("host", devices=1, name="real") as opened:
        yield opened


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Be a notebook with these names."""
    made: dict[str, Any] = {}
    for module in (names_, sys.modules[VramView.__module__]):
        monkeypatch.setattr(module, "notebook", lambda: made)
    monkeypatch.setattr(names_, "EVERY_S", 0.0)
    return made


def until(view: VramView, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the first state that is wanted of the only device; it is looked at meanwhile."""
    end = time.monotonic() + WAIT_S
    while True:
        state = view.sample()
        if "strip" in state["devices"][0] and wanted(state):
            return state
        assert time.monotonic() < end, state
        time.sleep(0.02)


def kept(state: dict[str, Any]) -> dict[int, list[str]]:
    strip = state["devices"][0]["strip"]
    return {piece["ids"][0]: piece.get("kept", []) for piece in strip}


def test_a_context_tells_the_kind_of_a_memory(host: System) -> None:
    gpu = host.devices[0]
    made = [
        memory.managed(gpu, (1000,)),
        memory.growing(gpu, (1000,), 2000),
        memory.shared(gpu, (1000,)),
        array.zeros(gpu, (1000,)),
    ]
    state = until(views.vram(host), lambda state: state["devices"][0]["count"] == len(made))
    told = {piece["ids"][0]: piece["memory"] for piece in state["devices"][0]["strip"]}
    assert [told[one.id] for one in made] == ["managed", "growing", "shared", "pool"]


def test_a_real_system_is_shown_with_the_names_that_keep_its_blocks(
    host: System, space: dict[str, Any]
) -> None:
    gpu = host.devices[0]
    space["a"] = gpu.put(np.ones((64, 64), np.float32))
    space["products"] = [gpu.ask(blas.Gemm(space["a"], space["a"]))]
    nameless = gpu.put(np.ones(4))
    view = views.vram(host)
    state = until(view, lambda state: state["devices"][0]["count"] == 3)
    assert kept(state) == {
        space["a"].id: ["a"],
        space["products"][0].id: ["products[0]"],
        nameless.id: [],
    }
    assert state["devices"][0]["used"] == 2 * 64 * 64 * 4 + 32
    state = until(view, lambda state: "history" in state["devices"][0])
    assert state["devices"][0]["history"]["peak"] == 2 * 64 * 64 * 4 + 32
    assert "Gemm #" in str(view)
    assert "products[0]" in view._repr_mimebundle_()[0]["text/html"]


def test_a_lost_buffer_is_shown_until_its_name_goes(host: System, space: dict[str, Any]) -> None:
    gpu = host.devices[0]
    kept_ = space["kept"] = gpu.put(np.ones(1024))
    lost: AccelRef = gpu.run(np.add, kept_, 1, writes=())
    space["lost"], id_ = lost.result(), lost.id
    view = views.vram(host)
    until(view, lambda state: kept(state) == {kept_.id: ["kept"], id_: ["lost"]})
    with pytest.raises(AccelError):
        host.inject("kill").result(timeout_s=WAIT_S)
    state = until(view, lambda state: "lost" in state["devices"][0])
    state = until(view, lambda state: kept(state) == {kept_.id: ["kept"]})
    drawn = state["devices"][0]
    assert (drawn["generation"], drawn["lost_in"]) == (2, 1)
    assert [(piece["ids"], piece["kept"]) for piece in drawn["lost"]] == [([id_], ["lost"])]
    del space["lost"], lost
    until(view, lambda state: "lost" not in state["devices"][0])


def test_free_gives_the_memory_back_and_what_uses_the_buffer_fails(
    host: System, space: dict[str, Any]
) -> None:
    gpu = host.devices[0]
    a, b = (gpu.put(np.ones((64, 64))) for _ in range(2))
    space.update(a=a, b=b)
    view = views.vram(host)
    until(view, lambda state: kept(state) == {a.id: ["a"], b.id: ["b"]})
    commands.obey(view, "free", device=gpu.name, id=a.id)
    state = until(view, lambda state: kept(state) == {b.id: ["b"]} and "said" in state)
    assert state["said"] == (
        f"Buffer {a.id} of {gpu.name} is freed; what uses it now fails with StaleRef"
    )
    assert state["devices"][0]["used"] == b.nbytes
    with pytest.raises(StaleRef, match="was freed"):
        gpu.ask(blas.Gemm(a, b)).result(timeout_s=WAIT_S)
    with pytest.raises(AccelError):
        host.inject("kill").result(timeout_s=WAIT_S)
    gpu.ping().result(timeout_s=WAIT_S)
    with pytest.raises(StaleRef):
        gpu.get(a).result(timeout_s=WAIT_S)
    np.testing.assert_array_equal(gpu.get(b).result(timeout_s=WAIT_S), np.ones((64, 64)))
    space.clear()
    host.check()


def test_a_checkpoint_brings_a_buffer_through_a_loss(host: System, space: dict[str, Any]) -> None:
    gpu = host.devices[0]
    made: AccelRef = gpu.run(np.ones, 16)
    space["made"] = made.result()
    assert made.durability == "lost on fault"
    view = views.vram(host)
    commands.obey(view, "checkpoint", device=gpu.name, id=made.id)
    state = until(view, lambda state: "said" in state)
    assert state["said"].endswith("is checkpointed: its contents survive a loss")
    assert made.durability == "checkpointed"
    with pytest.raises(AccelError):
        host.inject("kill").result(timeout_s=WAIT_S)
    np.testing.assert_array_equal(gpu.get(made).result(timeout_s=WAIT_S), np.ones(16))


def test_what_cannot_be_done_is_said(host: System, space: dict[str, Any]) -> None:
    gpu = host.devices[0]
    nameless = gpu.put(np.ones(4))
    view = views.vram(host)
    with pytest.raises(InvalidArgument, match="no name of the notebook"):
        view.do_free(gpu.name, nameless.id)
    assert "left as it is: no name" in view.sample()["said"]
    with System("host", devices=1, recover="stale") as forgetful:
        space["x"] = forgetful.devices[0].put(np.ones(4))
        other = views.vram(forgetful)
        with pytest.raises(InvalidArgument, match="replay"):
            other.do_checkpoint(forgetful.devices[0].name, space["x"].id)
        assert "replay" in other.sample()["said"]


def test_a_deed_that_fails_later_is_said_and_is_nobodys_background_failure(
    host: System, space: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = host.devices[0]
    space["x"] = gpu.put(np.ones(4))
    failing: Reply[None] = Reply()
    monkeypatch.setattr(type(gpu), "checkpoint", lambda *_: failing)
    view = views.vram(host)
    view.do_checkpoint(gpu.name, space["x"].id)
    assert "said" not in view.sample()
    failing.reject(StaleRef("buffer 1 is gone"))
    assert view.sample()["said"] == (
        f"Buffer {space['x'].id} of {gpu.name} was left as it is: buffer 1 is gone"
    )
