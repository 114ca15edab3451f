"""The lab and its compact form on a bare page, of made-up facts: no server and no kernel."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pytest

from accel_lab.compute.events.lifecycle import ContextLost
from accel_lab.compute.events.samples import Slice, TreeSampled
from accel_lab.views.lab import CompactView, LabView
from accel_lab.views.past.recording import Recording
from accel_lab.views.scene.fact_lines import encode, header
from accel_lab.views.scene.scene import Scene
from accel_lab.views.supervision import SupervisionView
from accel_lab.views.timeline import TimelineView
from accel_lab.views.widget import assets, commands
from accel_lab.views.widget.view import View
from tests.views.made_up import lab as made_up
from tests.views.test_supervision import KILLED
from tests.views.work import Recorded, work

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.jupyter import Tab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

PLAIN: Any = dict.fromkeys(("color_scheme", "forced_colors", "reduced_motion"), "null")
# Hosts a view as anywidget does, of a model that the test sets.
HOST = """async ([source, css, state, columns]) => {
    const style = document.createElement("style");
    style.textContent = css;
    document.head.append(style);
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const view = (await import(url)).default;
    const bytes = (text) => new DataView(Uint8Array.from(text).buffer);
    const heard = {};
    const values = { state: bytes(state), columns: bytes(columns), stamp: Date.now() / 1000 };
    window.sent = [];
    window.model = {
        get: (name) => values[name],
        set(name, value) {
            values[name] = typeof value === "number" ? value : bytes(value);
            for (const call of heard[`change:${name}`] ?? []) call();
        },
        on: (event, call) => (heard[event] ??= []).push(call),
        off() {},
        send: (message) => window.sent.push(message),
    };
    window.render = (el) => view.render({ model: window.model, el });
    window.render(document.querySelector("main"));
    window.beats = setInterval(() => window.model.set("stamp", Date.now() / 1000), 500);
}"""


class Bare:
    """A view on a page of its own."""

    def __init__(self, page: "Page", view: View) -> None:
        self.page, self.view = page, view
        page.goto("about:blank")
        page.set_content('<html lang="en"><title>view</title><body><main></main></body></html>')
        path = assets.entry(view.name)
        texts = [assets.source(f"{path}.js"), assets.style(f"{path}.css")]
        page.evaluate(HOST, [*texts, *self.sample()])

    def sample(self) -> list[list[int]]:
        """Return the state and the columns as they travel."""
        columns = self.view.pack(self.view.source.look())
        return [list(json.dumps(self.view.sample()).encode()), list(columns)]

    def publish(self) -> None:
        """Have the page get what the view shows now."""
        state, columns = self.sample()
        self.page.evaluate(
            """([state, columns]) => {
                window.model.set("columns", columns);
                window.model.set("state", state);
            }""",
            [state, columns],
        )

    def shoot(self, name: str) -> None:
        """Save a picture for people to look at."""
        from tests.browser.jupyter import SCREENSHOTS

        SCREENSHOTS.mkdir(exist_ok=True)
        self.find(".accel-lab").screenshot(path=SCREENSHOTS / f"page-{name}.png")

    def find(self, selector: str) -> "Locator":
        return self.page.locator(selector)

    def expect(self, selector: str) -> Any:
        from playwright.sync_api import expect

        return expect(self.find(selector))

    def obey(self, selector: str) -> None:
        """Click, and have the view do what the page has asked for."""
        before = self.page.evaluate("() => window.sent.length")
        self.find(selector).click()
        for message in self.page.evaluate("(n) => window.sent.slice(n)", before):
            commands.obey(self.view, **message)
        self.publish()


@pytest.fixture
def source() -> Recorded:
    """Return a system that lost a context long ago, and works since."""
    scene = Scene()
    scene.add(TreeSampled(root=made_up(2).tree()))
    for fact in KILLED:
        scene.add(fact)
    now = time.time()
    scene.add(work("gpu0", [Slice(1, "Gemm", "blas", "kernel", now - 3, now - 2)]))
    return Recorded(scene)


@pytest.fixture
def bare(tab: "Tab", source: Recorded) -> Iterator[Bare]:
    tab.page.set_viewport_size({"width": 1300, "height": 1000})
    yield Bare(tab.page, LabView(source))
    tab.page.emulate_media(**PLAIN)
    tab.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_view_has_the_reader_s_colours_before_it_is_on_the_page(
    bare: Bare, scheme: Literal["light", "dark"]
) -> None:
    """JupyterLab attaches an output after it was drawn; no colour is measured then."""
    bare.page.emulate_media(color_scheme=scheme)
    theme = """() => {
        const el = document.createElement("div");
        const end = window.render(el);
        const found = el.querySelector(".accel-lab").dataset.theme;
        end();
        return found;
    }"""
    assert bare.page.evaluate(theme) == scheme


def test_a_fault_that_is_chosen_is_brought_into_sight_of_the_timeline(bare: Bare) -> None:
    bare.expect(".timeline-summary").not_to_contain_text("NaN")
    follow = bare.page.get_by_role("button", name="Follow live", exact=True)
    bare.expect('.timeline-button[data-do="follow"]').to_have_attribute("aria-pressed", "true")
    fault = bare.find(".al-lab-supervision tbody tr").filter(has_text="context lost")
    fault.first.click()
    bare.expect('.timeline-button[data-do="follow"]').to_have_attribute("aria-pressed", "false")
    clock = "(at) => new Date(at * 1000).toTimeString().slice(0, 8)"
    middle = [bare.page.evaluate(clock, at) for at in (KILLED[0].at - 5, KILLED[0].at + 5)]
    bare.expect(".timeline-summary").to_contain_text(f"Shown is from {middle[0]}.000")
    bare.expect(".timeline-summary").to_contain_text(f"to {middle[1]}.000")
    bare.expect('.al-lab-tree tr[data-path="lab/gpu0"]').to_have_attribute("aria-selected", "true")
    follow.click()
    bare.expect('.timeline-button[data-do="follow"]').to_have_attribute("aria-pressed", "true")
    bare.expect(".timeline-summary").not_to_contain_text(middle[0])


def test_the_journal_takes_along_a_timeline_that_a_fault_was_chosen_in(
    tab: "Tab", tmp_path: Path
) -> None:
    path = tmp_path / "session.jsonl"
    lost_at, worked_at = 1_760_000_000.0, 1_760_000_060.0
    slice_ = Slice(1, "Gemm", "blas", "kernel", worked_at - 2, worked_at)
    facts = [
        TreeSampled(at=lost_at - 1, root=made_up(1).tree()),
        ContextLost(at=lost_at, device="gpu0", generation=1, cause="SIGKILL", in_flight=0),
        msgspec.structs.replace(work("gpu0", [slice_]), at=worked_at),
        TreeSampled(at=worked_at + 60, root=made_up(1).tree()),
    ]
    path.write_bytes(header("lab") + b"".join(map(encode, facts)))
    with Recording.open(path) as recording:
        bare = Bare(tab.page, LabView(recording))
        follow = '.timeline-button[data-do="follow"]'
        bare.find(".al-lab-supervision tbody tr").filter(has_text="context lost").first.click()
        bare.expect(follow).to_have_attribute("aria-pressed", "false")
        bare.expect(".timeline-summary").to_contain_text(f"Shown is from {clock(lost_at - 5)}")
        bare.obey('.al-journal-button[data-do="back"]')
        bare.expect(follow).to_have_attribute("aria-pressed", "true")
        bare.expect(".timeline-summary").to_contain_text(f"to {clock(worked_at)}")
        # What the pointer has put in place stays there.
        bare.page.get_by_role("button", name="Zoom in", exact=True).click()
        bare.find(".timeline-canvas").drag_to(
            bare.find(".timeline-canvas"),
            source_position={"x": 400, "y": 20},
            target_position={"x": 500, "y": 20},
        )
        bare.expect(follow).to_have_attribute("aria-pressed", "false")
        bare.obey('.al-journal-button[data-do="back"]')
        bare.expect(".al-journal-here .al-journal-entry").to_have_text("1")
        bare.expect(follow).to_have_attribute("aria-pressed", "false")
        tab.check()


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


SEEN = """() => {
    const box = (one) => one.getBoundingClientRect();
    const lab = box(document.querySelector(".accel-lab"));
    const all = ".al-lab-pane, .al-lab-bar, .al-lab-foot:not(:empty)";
    const found = [...document.querySelectorAll(all)];
    return {
        page: [document.documentElement.scrollHeight, window.innerHeight],
        wide: document.documentElement.scrollWidth <= window.innerWidth,
        panes: Object.fromEntries(found.map((one) => {
            const { left, top, right, bottom } = box(one);
            const inside = left >= lab.left && right <= lab.right + 1
                && top >= lab.top && bottom <= lab.bottom + 1;
            const name = one.dataset.pane ?? one.className;
            return [name, { left, top, width: right - left, height: bottom - top, inside }];
        })),
    };
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 900])
def test_all_of_a_lab_is_seen_without_scrolling_the_page(
    tab: "Tab", source: Recorded, width: int, scheme: Literal["light", "dark"]
) -> None:
    tab.page.emulate_media(color_scheme=scheme)
    tab.page.set_viewport_size({"width": width, "height": 900})
    bare = Bare(tab.page, LabView(source))
    bare.expect(".al-lab-wide").to_have_count(1 if width == 1400 else 0)
    seen = bare.page.evaluate(SEEN)
    assert seen["page"][0] <= seen["page"][1] == 900
    assert seen["wide"]
    panes = seen["panes"]
    below = {"vram"} if width == 1400 else set()
    assert panes.keys() >= {"al-lab-bar", "timeline", "tree", "supervision"} | below
    assert [name for name, pane in panes.items() if not pane["inside"]] == []
    timeline = panes["timeline"]
    assert all(pane["top"] >= timeline["top"] for name, pane in panes.items() if "bar" not in name)
    areas = {name: pane["width"] * pane["height"] for name, pane in panes.items()}
    assert max(areas, key=areas.__getitem__) == "timeline"
    lefts = {pane["left"] for name, pane in panes.items() if "al-lab" not in name}
    assert len(lefts) == (2 if width == 1400 else 1), "columns"
    # What a pane has room for is what scrolls in it: rows are seen, not only heads.
    bare.expect('.al-lab-tree tr[data-path="lab/gpu0"]').to_be_in_viewport()
    bare.expect(".al-lab-supervision tbody tr >> nth=0").to_be_in_viewport()
    bare.expect(".timeline-canvas").to_be_in_viewport(ratio=0.5)
    for head in ("al-work", "al-memory", "al-restarts"):
        bare.expect(f".al-lab-tree thead .{head}").to_be_in_viewport(ratio=1)
    if width == 1400:
        bare.expect(".al-lab-vram .vram-device >> nth=0").to_be_in_viewport()
    assert doubts(bare) == []
    bare.shoot(f"lab-{width}-{scheme}")
    tab.page.emulate_media(**PLAIN)
    tab.check()


def test_tabs_are_walked_with_keys_and_a_folded_pane_leaves_its_room_to_the_others(
    bare: Bare,
) -> None:
    bare.page.set_viewport_size({"width": 880, "height": 900})
    tab = bare.page.get_by_role("tab", name="Supervision")
    bare.expect(".al-lab-vram .vram-device >> nth=0").to_be_hidden()
    tab.focus()
    tab.press("ArrowRight")
    bare.page.get_by_role("tab", name="Kernels").press("ArrowRight")
    memory = bare.page.get_by_role("tab", name="Memory")
    bare.expect('[role="tab"][aria-selected="true"]').to_have_text("Memory")
    assert bare.page.evaluate("() => document.activeElement.textContent") == "Memory"
    bare.expect(".al-lab-vram .vram-device >> nth=0").to_be_in_viewport()
    bare.expect(".al-lab-supervision").to_be_hidden()
    memory.press("End")
    bare.expect(".al-health-scroll").to_be_visible()
    height = "() => document.querySelector('.al-lab-timeline').offsetHeight"
    before = bare.page.evaluate(height)
    bare.page.get_by_role("button", name="Supervision, Kernels, Memory, Health").click()
    bare.expect(".al-health-scroll").to_be_hidden()
    assert bare.page.evaluate(height) > before
    bare.page.get_by_role("tab", name="Memory").click()
    bare.expect(".al-lab-vram .vram-device >> nth=0").to_be_in_viewport()
    assert bare.page.evaluate(height) == before
    bare.page.set_viewport_size({"width": 1300, "height": 900})
    bare.expect(".al-lab-wide").to_have_count(1)
    bare.expect(".al-lab-supervision tbody tr >> nth=0").to_be_in_viewport()


def test_a_lab_that_is_moved_to_another_column_keeps_focus_and_scroll(bare: Bare) -> None:
    row = '.al-lab-tree tr[data-path="lab/gpu1"]'
    bare.find(row).focus()
    bare.page.set_viewport_size({"width": 800, "height": 500})
    bare.expect(".al-lab-wide").to_have_count(0)
    bare.expect(row).to_be_focused()


def test_the_controls_of_the_replay_stay_in_reach_when_its_rows_are_folded(
    tab: "Tab", tmp_path: Path
) -> None:
    path = tmp_path / "session.jsonl"
    at = 1_760_000_000.0
    facts = [
        TreeSampled(at=at, root=made_up(1).tree()),
        ContextLost(at=at + 1, device="gpu0", generation=1, cause="SIGKILL", in_flight=0),
        TreeSampled(at=at + 60, root=made_up(1).tree()),
    ]
    path.write_bytes(header("lab") + b"".join(map(encode, facts)))
    tab.page.set_viewport_size({"width": 1400, "height": 900})
    with Recording.open(path) as recording:
        bare = Bare(tab.page, LabView(recording))
        for width in (1400, 900):
            tab.page.set_viewport_size({"width": width, "height": 900})
            for name in ("To the start", "One back", "Play", "One on", "To the end", "Next fault"):
                button = bare.find(".al-lab-foot").get_by_role("button", name=name)
                button.wait_for()
                assert button.evaluate(IN_WINDOW)
            bare.expect(".al-lab-foot [role=slider]").to_be_in_viewport(ratio=1)
        bare.expect(".al-lab-journal").to_be_hidden()  # behind another tab
        bare.obey('.al-lab-foot [data-do="start"]')
        bare.expect(".al-lab-bar").to_contain_text("REPLAY fact 0 of 3")
        bare.expect(".al-lab-foot .al-journal-at").to_have_text("0 of 3")
        bare.find(".al-lab-foot [role=slider]").focus()
        bare.page.keyboard.press("ArrowRight")
        assert bare.page.evaluate("() => window.sent.at(-1)") == {
            "do": "part",
            "part": "journal",
            "message": {"do": "step", "n": 1},
        }
        tab.check()


IN_WINDOW = """(one) => {
    const { left, top, right, bottom } = one.getBoundingClientRect();
    return left >= 0 && top >= 0 && right <= window.innerWidth && bottom <= window.innerHeight;
}"""


def test_a_view_that_is_seldom_sampled_is_stale_only_when_it_is_late(bare: Bare) -> None:
    bare.expect(".al-lab-bar .al-badge").to_have_text("live")
    bare.page.evaluate("() => { clearInterval(window.beats); window.model.set('silence', 60); }")
    words = "() => document.querySelector('.al-lab-bar .al-badge').textContent"
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert bare.page.evaluate(words) == "live"
        time.sleep(0.1)
    bare.page.evaluate("() => window.model.set('silence', 1.5)")
    bare.expect(".al-lab-bar .al-badge").to_contain_text("stale")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_narrow_page_says_what_was_decided_under_the_cause(
    tab: "Tab", source: Recorded, theme: Literal["light", "dark"]
) -> None:
    tab.page.emulate_media(color_scheme=theme)
    tab.page.set_viewport_size({"width": 1300, "height": 700})
    bare = Bare(tab.page, SupervisionView(source))
    under, column = ".al-supervision-fault .al-supervision-decided", "th.al-supervision-decision"
    bare.expect(column).to_be_visible()
    bare.expect(f"{under} >> nth=0").to_be_hidden()
    for width in (600, 440):
        tab.page.set_viewport_size({"width": width, "height": 700})
        bare.expect(column).to_be_hidden()
        bare.expect(f"{under} >> nth=0").to_be_visible()
        bare.expect(f"{under} >> nth=0").to_contain_text("restart")
        fits = "(all) => all.every((one) => one.scrollWidth <= one.clientWidth)"
        for part in ("decided", "cause", "event", "generation", "took", "actor"):
            said = bare.find(f".al-supervision-fault .al-supervision-{part}")
            assert said.count() > 0
            assert said.evaluate_all(fits), f"{part} is not cut off at {width}"
        bare.find(".al-supervision-fault .al-supervision-fold").first.click()
        bare.expect(".al-supervision-step >> nth=0").to_be_visible()
        bare.shoot(f"supervision-{width}-{theme}")
        assert doubts(bare) == []
        bare.find(".al-supervision-fault .al-supervision-fold").first.click()
    tab.page.emulate_media(**PLAIN)
    tab.check()


@pytest.fixture
def compact(tab: "Tab", source: Recorded) -> Iterator[Bare]:
    tab.page.set_viewport_size({"width": 900, "height": 700})
    yield Bare(tab.page, CompactView(source))
    tab.page.emulate_media(**PLAIN)
    tab.check()


def test_the_compact_view_is_paused_and_follows_again(compact: Bare, source: Recorded) -> None:
    badge = ".al-lab-bar .al-badge"
    compact.expect(badge).to_have_text("live")
    compact.expect(".al-badge:visible").to_have_count(1)
    compact.expect(".al-title > strong:visible").to_have_text("lab")
    compact.page.get_by_role("button", name="Pause").click()
    compact.expect(badge).to_have_text("paused")
    sick = made_up(2)
    sick.devices[1].state = "circuit open"
    source.scene.add(TreeSampled(root=sick.tree()))
    compact.publish()
    state = 'tr[data-path="lab/gpu1"] .al-state'
    compact.page.wait_for_timeout(300)
    compact.expect(state).to_have_text("idle")
    compact.page.get_by_role("button", name="Follow live").press("Enter")
    compact.expect(state).to_have_text("circuit open")
    compact.expect(badge).to_have_text("live")
    compact.find('tr[data-path="lab/gpu1"]').click()
    compact.expect(".al-lab-picked").to_have_text("gpu1")
    compact.page.get_by_role("button", name="Clear selected").click()
    compact.expect('[aria-selected="true"]').to_have_count(0)


LOOKS: dict[str, Any] = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "forced": {"forced_colors": "active"},
    "forced-dark": {"forced_colors": "active", "color_scheme": "dark"},
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("kind", ["bare", "compact"])
def test_the_lab_is_accessible_in_every_look(
    request: pytest.FixtureRequest, source: Recorded, kind: str, look: str
) -> None:
    view: Bare = request.getfixturevalue(kind)
    view.page.emulate_media(**PLAIN | LOOKS[look])
    sick = made_up(2)
    sick.devices[1].state = "circuit open"
    source.scene.add(TreeSampled(root=sick.tree()))
    view.publish()
    view.expect('tr[data-path="lab/gpu1"] .al-state').to_have_text("circuit open")
    view.find('tr[data-path="lab/gpu0"]').focus()
    theme = "dark" if "dark" in look else "light"
    view.expect(".accel-lab").to_have_attribute("data-theme", theme)
    if "forced" in look:
        inks = "() => getComputedStyle(document.querySelector('.al-lab-button')).borderColor"
        text = "() => getComputedStyle(document.querySelector('main')).color"
        assert view.page.evaluate(inks) == view.page.evaluate(text), "edges are drawn"
        edges = view.find(".vram-device").evaluate_all(
            "(all) => all.map((one) => getComputedStyle(one).borderInlineStartColor)"
        )
        assert view.page.evaluate(text) not in edges, "no device looks chosen"
    assert doubts(view) == []
    view.shoot(f"{view.view.name}-{look}")


FRAMES = """() => new Promise((resolve) => {
    const ask = window.requestAnimationFrame;
    let asked = 0;
    window.requestAnimationFrame = (paint) => {
        asked += 1;
        return ask(paint);
    };
    setTimeout(() => {
        window.requestAnimationFrame = ask;
        resolve(asked);
    }, 3000);
})"""


def painted(bare: Bare, again: Callable[[], None]) -> int:
    """Return how often a view is painted that moves; a busy machine paints less, so look again."""
    frames: int = bare.page.evaluate(FRAMES)
    for _ in range(4):
        if frames > 15:
            break
        again()
        frames = bare.page.evaluate(FRAMES)
    return frames


def test_a_lab_at_rest_is_hardly_painted(tab: "Tab") -> None:
    """Who keeps it open all day pays with the battery for whatever moves."""
    scene, lab = Scene(), made_up(2)
    scene.add(TreeSampled(root=lab.tree()))
    source = Recorded(scene)
    source.lab = lab
    tab.page.set_viewport_size({"width": 1300, "height": 1000})
    bare = Bare(tab.page, LabView(source))

    def worked(ago_s: float) -> None:
        end = time.time() - ago_s
        scene.add(work("gpu0", [Slice(scene.traced, "Gemm", "blas", "kernel", end - 0.1, end)]))
        bare.publish()
        bare.page.wait_for_timeout(500)

    worked(60)
    bare.expect(".al-lab-bar .al-badge").to_have_text("live")
    moving = "() => document.querySelector('.accel-lab').getAnimations({ subtree: true }).length"
    assert bare.page.evaluate(moving) == 0
    at_rest = bare.page.evaluate(FRAMES)
    worked(1)
    in_sight = painted(bare, lambda: worked(1))
    bare.find("main").evaluate("(main) => { main.style.marginBlockStart = '3000px'; }")
    worked(0)
    out_of_sight = bare.page.evaluate(FRAMES)
    assert in_sight > 24 > max(at_rest, out_of_sight), (at_rest, in_sight, out_of_sight)
    tab.check()


def doubts(bare: Bare) -> list[dict[str, str]]:
    """Return what axe finds wrong, or cannot tell."""
    from tests.browser.jupyter import axe

    said, kept = axe(bare.page.locator(".accel-lab"))
    assert "color-contrast" in kept
    # Of one digit, and of rows that are scrolled half out of sight, it cannot tell.
    unknown = ("partially obscured", "too short to determine")
    return [one for one in said if not any(words in one["message"] for words in unknown)]


def test_a_view_that_is_scrolled_away_is_hardly_painted(tab: "Tab") -> None:
    """Above the cells at which somebody works stand those that they have left behind."""
    scene, lab = Scene(), made_up(1)
    scene.add(TreeSampled(root=lab.tree()))
    source = Recorded(scene)
    source.lab = lab
    bare = Bare(tab.page, TimelineView(source))

    def works(*seqs: int) -> None:
        now = time.time()
        running = [Slice(seq, "spin", "jit", "kernel", now - 0.5, now) for seq in seqs]
        scene.add(work("gpu0", running=running))
        bare.publish()

    works(1)
    bare.expect(".timeline-running").to_have_text("1 running")
    in_sight = painted(bare, lambda: works(1))
    bare.find("main").evaluate("(main) => { main.style.marginBlockStart = '3000px'; }")
    bare.page.wait_for_timeout(500)
    works(2, 3)
    out_of_sight = bare.page.evaluate(FRAMES)
    assert in_sight > 15 > out_of_sight, (in_sight, out_of_sight)
    bare.expect(".timeline-running").to_have_text("2 running")
    bare.find("main").evaluate("(main) => { main.style.marginBlockStart = '0'; }")
    bare.page.wait_for_timeout(500)
    assert painted(bare, lambda: works(2, 3)) > 15
    tab.check()
