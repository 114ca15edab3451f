"""Facts become incidents, and incidents a feed; with real faults on a real system."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_lab import System
from accel_lab.actor.events import ActorRestarted, ActorStarted, ActorStopped
from accel_lab.actor.reply import Reply
from accel_lab.compute.events.lifecycle import (
    BuffersRebuilt,
    CircuitClosed,
    CircuitOpened,
    ContextExited,
    ContextLost,
    ContextStarted,
    GenerationChanged,
    LibraryRestarted,
    RequestFailed,
)
from accel_lab.compute.events.samples import Block, MemorySampled, TreeSampled
from accel_lab.errors import CircuitOpen, InvalidArgument, LibraryError, SystemClosed
from accel_lab.errors import ContextLost as ContextWasLost
from accel_lab.views.scene.incidents import Incident, duration, incidents
from accel_lab.views.scene.observer import Want
from accel_lab.views.scene.scene import FACTS, Fact, Scene
from accel_lab.views.supervision import SupervisionView, html, state_of, text
from accel_lab.views.timeline import TimelineView
from tests.views.made_up import lab as made_up

LOST = (
    "gpu0 lost its context of generation 1: its process ended with SIGKILL; "
    "the device is now at generation 2"
)
POISONED = (
    "gpu0 lost its context of generation 2: CUDA_ERROR_ILLEGAL_ADDRESS (700), a kernel; "
    "the device is now at generation 3; what it ran last: Gemm #7 on blas"
)
KILLED: list[Fact] = [
    ContextExited(device="gpu0", generation=1, pid=11, status="SIGKILL", at=10.0),
    GenerationChanged(device="gpu0", before=1, after=2, at=10.1),
    ContextLost(device="gpu0", generation=1, cause=LOST, in_flight=3, name="SIGKILL", at=10.2),
    ActorRestarted(path="/gpu0/context", cause=OSError(LOST), attempt=2, delay_s=0.1, at=10.3),
    ContextStarted(device="gpu0", generation=2, pid=12, seconds=0.02, at=10.4),
    BuffersRebuilt(
        device="gpu0",
        generation=2,
        buffers=1,
        lost=2,
        messages=4,
        requests=(5, 6, 9),
        seconds=0.001,
        at=10.5,
    ),
]
OPENED: list[Fact] = [
    GenerationChanged(device="gpu0", before=2, after=3, at=20.0),
    ContextLost(
        device="gpu0",
        generation=2,
        cause=POISONED,
        in_flight=1,
        recent=("Put #6 on upload", "Gemm #7 on blas"),
        code=700,
        name="CUDA_ERROR_ILLEGAL_ADDRESS",
        at=20.1,
    ),
    ActorStopped(path="/gpu0/context", cause=OSError(POISONED), at=20.2),
    CircuitOpened(device="gpu0", cause=POISONED, at=20.3),
    ContextExited(device="gpu0", generation=2, pid=12, status="SIGKILL", at=20.4),
]
RESET: list[Fact] = [
    ActorStarted(path="/gpu0/context", at=30.0),
    ContextStarted(device="gpu0", generation=3, pid=13, seconds=0.02, at=30.1),
    CircuitClosed(device="gpu0", at=30.2),
]


def paired(facts: Iterable[Fact], devices: Iterable[str] = ("gpu0", "gpu1")) -> list[Incident]:
    return incidents(enumerate(facts), devices)


def test_a_loss_is_one_incident_from_the_end_of_its_process_to_its_buffers() -> None:
    [loss] = paired(KILLED)
    assert (loss.number, loss.at, loss.path, loss.what) == (0, 10.0, "gpu0", "context lost")
    assert (loss.outcome, loss.level) == ("recovered", "fault")
    assert (loss.cause, loss.name, loss.code) == ("its process ended with SIGKILL", "SIGKILL", 0)
    assert (loss.before, loss.after) == (1, 2)
    assert loss.decisions == [
        "restart after 100 ms",
        "rebuilt 1 buffer, lost 2",
        "requests #5, #6 and #9 run again",
    ]
    assert loss.recovery_s == pytest.approx(0.3)  # from ContextLost to BuffersRebuilt
    assert [words for _, words in loss.steps] == [
        "process 11 ended with SIGKILL",
        "generation 1 → 2",
        "context lost, 3 requests in flight",
        "decision: restart after 100 ms, attempt 2",
        "context of generation 2 started as process 12 in 20 ms",
        (
            "rebuilt 1 buffer, lost 2; ran 4 messages again in 1.0 ms, "
            "and requests #5, #6 and #9 that had been in flight"
        ),
    ]


def test_a_loss_without_buffers_is_over_when_its_context_has_started() -> None:
    [loss] = paired(KILLED[:5])
    assert loss.outcome == "recovered"
    assert loss.recovery_s == pytest.approx(0.2)
    [loss] = paired(KILLED[:4])
    assert (loss.outcome, loss.recovery_s) == ("recovering", None)


def test_a_circuit_belongs_to_the_loss_that_opened_it_until_it_is_closed() -> None:
    [_, loss] = paired(KILLED + OPENED)
    assert (loss.outcome, loss.recovery_s) == ("circuit open", None)
    assert loss.decisions == ["stop", "circuit opened"]
    assert (loss.code, loss.name) == (700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    assert loss.cause == "CUDA_ERROR_ILLEGAL_ADDRESS (700), a kernel"
    assert "it ran last, the newest first: Gemm #7 on blas, Put #6 on upload" in [
        words for _, words in loss.steps
    ]
    [_, loss] = paired(KILLED + OPENED + RESET)
    assert loss.outcome == "recovered"
    assert loss.recovery_s == pytest.approx(10.1)
    assert loss.decisions == ["stop", "circuit opened", "circuit closed"]


def test_a_probe_that_fails_keeps_the_incident_open() -> None:
    again = ContextLost(
        device="gpu0",
        generation=3,
        cause="gpu0 lost its context of generation 3: it is hopeless; it had not started",
        in_flight=0,
        at=31.0,
    )
    opened = CircuitOpened(device="gpu0", cause=again.cause, at=31.1)
    [loss] = paired([*OPENED, RESET[0], again, opened])
    assert loss.outcome == "circuit open"
    assert loss.steps[-2][1] == "context lost, 0 requests in flight: it is hopeless"


def test_a_device_that_shares_a_circuit_has_its_own_incident() -> None:
    shared = "it shares state with a device that was lost (gpu0 lost its context; and more)"
    [loss] = paired(
        [
            CircuitOpened(device="gpu1", cause=POISONED, at=20.3),
            ActorStopped(path="/devices/gpu1", cause=None, at=20.4),
            GenerationChanged(device="gpu1", before=5, after=6, at=20.5),
            ContextLost(
                device="gpu1",
                generation=5,
                cause=f"gpu1 lost its context of generation 5: {shared}; "
                "the device is now at generation 6",
                in_flight=0,
                at=20.6,
            ),
        ]
    )
    assert (loss.what, loss.before, loss.after) == ("context lost", 5, 6)
    assert (loss.cause, loss.outcome) == (shared, "circuit open")


def test_devices_that_never_start_say_why() -> None:
    [stuck] = paired([CircuitOpened(device="gpu0", cause="no driver answers")])
    assert (stuck.what, stuck.cause, stuck.outcome) == (
        "cannot start",
        "no driver answers",
        "circuit open",
    )


def test_the_start_of_a_device_is_one_note() -> None:
    [start] = paired(
        [
            ActorStarted(path="/gpu0"),
            ActorStarted(path="/gpu0/context"),
            ContextStarted(device="gpu0", generation=1, pid=11, seconds=1.84),
        ]
    )
    assert (start.level, start.what, start.after, len(start.steps)) == (
        "note",
        "context started",
        1,
        3,
    )


def test_requests_that_failed_of_a_fault_belong_to_it_and_others_do_not() -> None:
    def failed(error: str, at: float) -> RequestFailed:
        return RequestFailed(device="gpu0", message="one request", error=error, cell=3, at=at)

    library = LibraryRestarted(
        device="gpu0", library="blas", cause="CUBLAS_STATUS_X", restarts=1, at=40.0
    )
    found = paired(
        [
            *KILLED,
            failed(f"ContextLost: {LOST}", 10.6),
            library,
            failed("LibraryError: CUBLAS_STATUS_X", 40.25),
            failed("OutOfMemory: 7 bytes were asked for", 41.0),
            failed("LibraryError: CUBLAS_STATUS_X", 50.0),  # too late to be of the same
        ]
    )
    assert [(one.what, one.path, one.outcome) for one in found] == [
        ("context lost", "gpu0", "recovered"),
        ("library failed", "gpu0/context/blas", "restarted"),
        ("request failed", "gpu0", "failed"),
        ("request failed", "gpu0", "failed"),
    ]
    assert [len(one.steps) for one in found] == [7, 2, 1, 1]
    assert (found[2].name, found[2].cause) == ("OutOfMemory", "7 bytes were asked for")
    assert found[2].decisions == ["resume"]
    assert "of cell 3" in found[2].steps[0][1]


def test_a_request_that_ran_too_long_belongs_to_the_loss_it_caused() -> None:
    why = "request 5 ran longer than its 0.5 s"
    lost = ContextLost(
        device="gpu0",
        generation=1,
        cause=f"gpu0 lost its context of generation 1: {why}; the device is now at generation 2",
        in_flight=1,
        at=1.0,
    )
    late = RequestFailed(
        device="gpu0",
        message="one request",
        error=f"DeadlineExceeded: {why} on gpu0; its context was replaced",
        cell=None,
        at=2.0,
    )
    [loss] = paired([lost, late])
    assert len(loss.steps) == 2


def test_actors_of_the_user_are_incidents_of_their_own() -> None:
    found = paired(
        [
            ActorStarted(path="/feeder"),
            ActorRestarted(path="/feeder", cause=ValueError("no"), attempt=1, delay_s=0.0),
            ActorStopped(path="/feeder", cause=ValueError("no")),
            ActorStopped(path="/other", cause=None),
        ]
    )
    assert [(one.level, one.what, one.outcome, one.decisions) for one in found] == [
        ("note", "actor started", "started", []),
        ("fault", "actor failed", "restarted", ["restart"]),
        ("fault", "actor failed", "stopped", ["stop"]),
        ("note", "actor stopped", "stopped", []),
    ]
    assert (found[1].name, found[1].cause, found[1].device) == ("ValueError", "no", "")


def test_a_process_whose_end_nothing_explains_is_a_note() -> None:
    [end] = paired([ContextExited(device="gpu0", generation=1, pid=11, status="SIGKILL")])
    assert (end.level, end.what, end.outcome) == ("note", "process ended", "ended")


def test_times_are_written_with_the_digits_that_matter() -> None:
    said = [duration(s) for s in (0.0007, 0.00996, 0.0331, 0.9996, 1.84, 9.96, 61)]
    assert said == ["0.7 ms", "10 ms", "33 ms", "1.0 s", "1.8 s", "10 s", "61 s"]


devices = st.sampled_from(["gpu0", "gpu1"])
paths = st.sampled_from(["/gpu0", "/gpu0/context", "/devices/gpu1", "/mine", "/devices"])
generations = st.integers(1, 4)
causes = st.sampled_from([LOST, POISONED, "anything"])
facts_of_all_kinds: st.SearchStrategy[list[Fact]] = st.lists(
    st.one_of(
        st.builds(
            ContextExited,
            device=devices,
            generation=generations,
            pid=st.just(1),
            status=st.just("SIGKILL"),
        ),
        st.builds(GenerationChanged, device=devices, before=generations, after=generations),
        st.builds(
            ContextLost,
            device=devices,
            generation=generations,
            cause=causes,
            in_flight=st.just(1),
            recent=st.just(()),
            code=st.just(0),
            name=st.just(""),
        ),
        st.builds(
            ContextStarted,
            device=devices,
            generation=generations,
            pid=st.just(1),
            seconds=st.just(0.1),
        ),
        st.builds(CircuitOpened, device=devices, cause=causes),
        st.builds(CircuitClosed, device=devices),
        st.builds(ActorStarted, path=paths),
        st.builds(ActorStopped, path=paths, cause=st.sampled_from([None, OSError("x")])),
        st.builds(
            RequestFailed,
            device=devices,
            message=st.just("m"),
            error=causes.map("ContextLost: {}".format),
            cell=st.none(),
        ),
    ),
    max_size=40,
)


@given(facts_of_all_kinds)
def test_no_order_of_facts_loses_one_or_tells_it_twice(facts: list[Fact]) -> None:
    found = paired(facts)
    numbers = [one.number for one in found]
    assert numbers == sorted(set(numbers))
    told = sum(len(one.steps) for one in found)
    waiting = [fact for fact in facts if isinstance(fact, ActorStarted)]  # for their context
    assert len(facts) - len(waiting) <= told <= len(facts)
    assert all(one.recovery_s is None or not one.is_open for one in found)
    json.dumps(state_of(found))


# The feed.


class Recorded:
    """A source without a system."""

    lab = None

    def __init__(self, scene: Scene) -> None:
        self.lock = threading.RLock()
        self.scene = scene

    @property
    def ended(self) -> bool:
        return self.scene.closed

    def look(self) -> Scene:
        return self.scene

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        pass

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        return callback


class Text(HTMLParser):
    """The cells of a table, in order; its tags nest."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.open: list[str] = []
        self.feed(markup)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"scope"}
        self.open.append(tag)
        if tag in ("td", "th", "caption"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.cells[-1] += data


def test_text_and_table_say_the_same() -> None:
    state = state_of(paired(KILLED + OPENED), closed=True)
    lines = text(state).splitlines()
    assert lines[0] == "supervision: 2 faults (closed)"
    assert lines[2].split()[1:] == ["●", "recovered", "gpu0", "g1", "→", "g2", "300", "ms"]
    assert lines[3] == "    context lost: its process ended with SIGKILL"
    assert (
        lines[4] == "    decision: restart after 100 ms, rebuilt 1 buffer, lost 2, requests #5, #6"
    )
    assert "⊗ circuit open" in lines[6]
    cells = [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in Text(html(state)).cells]
    assert cells[0] == lines[0]
    assert len(cells) == 1 + 8 * 3
    said = " ".join(" ".join(lines[2:]).split())
    assert all(cell in said for cell in cells[9:25])


def test_the_code_and_the_decision_are_whole_in_80_columns() -> None:
    why = "an illegal memory access was encountered while the kernel `saxpy_of_the_second_kind` ran"
    lost = ContextLost(
        device="gpu0",
        generation=1,
        cause=f"CUDA_ERROR_ILLEGAL_ADDRESS: {why}",
        in_flight=3,
        code=700,
        name="CUDA_ERROR_ILLEGAL_ADDRESS",
    )
    state = state_of(paired([lost, CircuitOpened(device="gpu0", cause="too often")]))
    lines = text(state).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[3].startswith("    context lost: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal")
    assert why in " ".join(text(state).split())
    assert "…" not in text(state)


def test_what_a_fault_would_cost_is_told_as_far_as_it_was_seen() -> None:
    scene, blocks = Scene(), [Block((n,), n << 20, 1 << 20, "Put #1", "int8", (4,)) for n in (1, 2)]
    scene.add(TreeSampled(root=made_up(2).tree()))
    scratch = Block((-1,), 9 << 20, 1 << 20, "scratch of blas", "uint8", (4,))
    scene.add(
        MemorySampled(
            device="gpu0",
            generation=1,
            used_bytes=3 << 20,
            total_bytes=None,
            blocks=(*blocks, scratch),
            unlisted=4,
        )
    )
    devices = SupervisionView(Recorded(scene)).fold(scene)["devices"]
    assert devices[0] == {"name": "gpu0", "state": "running", "arrays": 6}
    assert devices[1] == {"name": "gpu1", "state": "running"}


def test_a_table_holds_what_a_fault_says_as_text() -> None:
    state = state_of(paired([CircuitOpened(device="gpu0", cause="<img src=x> & more")]))
    assert "&lt;img src=x&gt; &amp; more" in html(state)
    assert "style" not in html(state)
    assert html(state, "text-align: left").count('style="text-align: left"') == 1 + 8 + 8


def test_history_is_bounded_and_says_what_is_missing() -> None:
    scene = Scene()
    for n in range(FACTS + 500):
        error = f"OutOfMemory: {n} bytes were asked for " + "and more " * 20
        scene.add(RequestFailed(device="gpu0", message="m", error=error, cell=None, at=float(n)))
    view = SupervisionView(Recorded(scene))
    state = view.sample()
    kept, older = len(state["rows"]), state["older"]["fault"]
    assert kept > 20
    assert kept + older == FACTS
    assert state["forgotten"] == 500
    assert len(json.dumps(state)) < 32_000
    assert state["rows"][-1]["at"] == FACTS + 499
    said = " ".join(str(view).split())
    assert f"{older} older ones are not shown. 500 facts before that are forgotten" in said
    assert f": {FACTS} faults. " in said


@pytest.mark.parametrize("seen", ["before", "after"])
def test_what_nobody_looked_at_in_time_is_counted(seen: str) -> None:
    """The history of a system, and what waits for a look, have 10 000 places."""
    lab = made_up()
    early = SupervisionView(lab) if seen == "before" else None
    for n in range(25_000):
        lab.events.publish(ContextLost(device="gpu0", generation=n, cause=LOST, in_flight=0, at=n))
    view = early or SupervisionView(lab)
    assert view.sample()["forgotten"] == 25_000 - FACTS
    assert "24000 facts before that are forgotten" in " ".join(str(view).split())
    lab.events.publish(CircuitOpened(device="gpu0", cause=LOST))
    assert view.sample()["forgotten"] == 25_001 - FACTS


def test_notes_do_not_push_faults_out() -> None:
    notes: list[Fact] = [ActorStarted(path=f"/mine{n}") for n in range(900)]
    state = state_of(paired([*KILLED, *notes]))
    assert state["rows"][0]["what"] == "context lost"
    assert state["older"]["note"] > 500


def test_many_steps_keep_the_first_and_the_last() -> None:
    probes: list[Fact] = [CircuitOpened(device="gpu0", cause="x", at=float(n)) for n in range(100)]
    [row] = state_of(paired(probes))["rows"]
    assert (len(row["steps"]), row["skipped"]) == (16, 84)
    assert (row["steps"][0][0], row["steps"][-1][0]) == (0.0, 99.0)


def test_a_recording_has_no_buttons() -> None:
    view = SupervisionView(Recorded(Scene()))
    assert "acts" not in view.sample()
    with pytest.raises(SystemClosed):
        view.do_reset("gpu0")


def test_a_lab_that_is_only_looked_at_cannot_be_acted_upon() -> None:
    source = made_up(1)
    view = SupervisionView(source)
    state = view.sample()
    assert state["devices"] == [{"name": "gpu0", "state": "running"}]
    with pytest.raises(InvalidArgument, match="only looked at"):
        view.do_inject("gpu0", "kill")


def test_an_unchanged_scene_is_not_folded_again() -> None:
    source = made_up(1)
    view = SupervisionView(source)
    first = view.sample()
    assert view.sample() is first
    source.devices[0].state = "circuit open"
    assert view.sample()["devices"][0]["state"] == "circuit open"
    source.events.publish(CircuitOpened(device="gpu0", cause="x"))
    assert len(view.sample()["rows"]) == 1


def test_only_what_was_not_asked_for_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = made_up(devices=1)
    for error in (LibraryError("asked for"), SystemClosed("closed"), CircuitOpen("it is open")):
        reply: Reply[None] = Reply()
        reply.reject(error)
        monkeypatch.setattr(source, "inject", lambda *_, reply=reply, **__: reply, raising=False)
        SupervisionView(source).do_inject("gpu0", "library")
    assert capsys.readouterr().err == "inject library on gpu0: CircuitOpen: it is open\n"


def test_a_fault_that_a_busy_device_has_not_come_to_is_told() -> None:
    with System("host") as lab:
        view = SupervisionView(lab)
        (cpu,) = lab.devices
        assert "asked" not in view.sample()
        busy = cpu.run(time.sleep, 1000)
        for _ in range(2):
            view.do_inject("cpu0", "library")
        assert view.sample()["asked"] == ["library on cpu0"] * 2
        busy.cancel()
        until(lambda: "asked" not in view.sample())


def until(condition: Callable[[], bool]) -> None:
    """Wait for what the system's own threads do."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_real_faults_are_told_and_a_real_circuit_is_reset(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with System("host", max_restarts=1, name="real") as lab:
        view = SupervisionView(lab)

        def newest() -> dict[str, object]:
            rows = [row for row in view.sample()["rows"] if row["level"] == "fault"]
            return rows[-1] if rows else {}

        def outcome() -> object:
            return newest().get("outcome")

        assert view.sample()["acts"]
        assert view.sample()["lab"] == "real"
        view.do_inject("cpu0", "kill")
        until(lambda: outcome() == "recovered")
        row = newest()
        assert (row["name"], row["cause"]) == ("SIGKILL", "its process ended with SIGKILL")
        assert (row["before"], row["after"], row["decisions"]) == (1, 2, ["restart"])
        assert row["took"]
        view.do_inject("cpu0", "poison")
        until(lambda: outcome() == "circuit open")
        row = newest()
        assert (row["code"], row["name"]) == (700, "CUDA_ERROR_ILLEGAL_ADDRESS")
        assert view.sample()["devices"][0]["state"] == "circuit open"
        view.do_reset("cpu0")
        until(lambda: outcome() == "recovered")
        assert newest()["decisions"] == ["stop", "circuit opened", "circuit closed"]
        view.do_inject("cpu0", "library")
        until(lambda: newest().get("what") == "library failed")
        with pytest.raises(InvalidArgument, match="no fault"):
            view.do_inject("cpu0", "nonsense")  # type: ignore[arg-type]
        lab.check()  # none of it failed in the background
    assert view.sample()["closed"]
    assert "acts" not in view.sample()
    assert capsys.readouterr().err == ""


def test_what_a_spare_context_is_lost_of_is_no_fault() -> None:
    """As `explain` loses it, which a failure's own text asks for."""
    with System("host") as lab:
        views = SupervisionView(lab), TimelineView(lab)
        for _ in range(2):
            with pytest.raises(ContextWasLost):
                lab.inject("kill").result()
            lab.ready()
            assert lab.explain().culprit is not None
        rows, marks = views[0].sample()["rows"], views[1].sample()["marks"]
    assert [row["path"] for row in rows if row["level"] == "fault"] == ["cpu0", "cpu0"]
    assert {row["path"] for row in rows} == {"cpu0"}
    assert {device for _, device, _, _ in marks} == {"cpu0"}


def test_a_fault_that_strikes_before_the_view_waits_for_it_is_not_told_of_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inject = System.inject

    def struck(*args: Any, **named: Any) -> Reply[None]:
        reply: Reply[None] = inject(*args, **named)
        until(lambda: reply.done)
        return reply

    monkeypatch.setattr(System, "inject", struck)
    with System("host") as lab:
        SupervisionView(lab).do_inject("cpu0", "library")
        lab.check()
