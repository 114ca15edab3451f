"""How handles, devices, messages, answers, reports and errors read in a notebook's cell."""

import re
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import array, blas, fft
from accel_lab.actor.reply import Reply
from accel_lab.bench.machine import Machine
from accel_lab.bench.report import Report as BenchReport
from accel_lab.bench.row import Row
from accel_lab.compute.wire.codec import encode_entry
from accel_lab.doctor.report import Report as DoctorReport
from accel_lab.errors import (
    AccelError,
    ActorError,
    ContextLost,
    InvalidArgument,
    JournalError,
    StaleRef,
)
from accel_lab.system import System
from tests.interactive import Shell, shell
from tests.project import ROOT

WAIT_S = 20.0
PLAIN = {"table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre", "p"}


class Markup(HTMLParser):
    """What a reader of the markup meets; tags that do not nest are refused."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: dict[str, list[str]] = {}
        self.feed(markup)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1], []).append(data)

    @property
    def facts(self) -> dict[str, str]:
        return dict(zip(self.texts.get("th", []), self.texts.get("td", []), strict=True))


def read(shown: Any) -> Markup:
    """Read what a notebook shows of something, which is never a style or a script."""
    markup = Markup(shown._repr_html_())
    assert markup.tags <= PLAIN
    assert markup.attributes <= {"scope"}
    return markup


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", name="shown", max_restarts=20) as system:
        yield system


def test_a_buffer_says_what_and_where_it_is_and_what_a_fault_would_do(lab: System) -> None:
    gpu = lab.devices[0]
    ref = gpu.put(np.ones((2, 3), "f4")).result()
    lab.flush()
    facts = read(ref).facts
    assert facts == {
        "shape": "(2, 3)",
        "dtype": "float32",
        "size": "6 elements, 24 B",
        "device": f"cpu0, buffer {ref.id}",
        "generation": str(gpu.generation),
        "state": "made",
        "durability": "replayable: 1 message would make it again",
        "values": "[[1, 1, 1], [1, 1, 1]]",
    }
    assert repr(ref) == (
        f"<AccelRef float32[2, 3] on cpu0, buffer {ref.id} of generation {gpu.generation}, made>"
    )


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.001)


def test_a_buffer_in_flight_is_shown_without_waiting(
    lab: System, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    gpu = lab.devices[0]
    a = gpu.put(np.ones((4, 4), "f4")).result()
    gpu.run(wait_for, tmp_path / "go")
    request.addfinalizer((tmp_path / "go").touch)  # or the other tests' device waits for ever
    c = blas.gemm(a, a)
    unknown = gpu.run(np.add, a, a)
    begin = time.monotonic()
    assert read(c).facts["state"] == "in flight"
    facts = read(unknown).facts
    assert facts["shape"] == "unknown until the device answers"
    assert "dtype" not in facts
    assert read(blas.Gemm(unknown, a)).facts["b"] == f"#{a.id} float32[4, 4]"
    assert "makes" not in read(blas.Gemm(unknown, a)).facts
    assert read(gpu.get(c)).facts["state"] == "pending"
    assert time.monotonic() - begin < 5.0
    while read(gpu).facts["in flight"] == "0":
        assert time.monotonic() - begin < WAIT_S, "the context never took them up"
        time.sleep(0.01)
    (tmp_path / "go").touch()
    unknown.result(WAIT_S)
    assert read(unknown).facts["shape"] == "(4, 4)"


def test_durability_is_not_waited_for(lab: System) -> None:
    gpu = lab.devices[0]
    ref = gpu.put(np.ones(3)).result()
    recorder = next(one for one in lab.recorders if one.device == gpu.name)
    held, done = threading.Event(), threading.Event()

    def drain() -> None:
        with recorder._draining:
            held.set()
            done.wait(WAIT_S)

    thread = threading.Thread(target=drain)
    thread.start()
    held.wait(WAIT_S)
    begin = time.monotonic()
    assert read(ref).facts["durability"] == "not known yet, .durability waits for it"
    assert time.monotonic() - begin < 5.0
    done.set()
    thread.join()


def test_a_long_history_is_not_waited_for() -> None:
    with System("host") as lab:
        (gpu,) = lab.devices
        ref = gpu.put(np.ones(3)).result()
        lab.flush()
        zeros = array.Zeros((4,), "float32")
        sent = [encode_entry(n, n, None, zeros) for n in range(10**6, 10**6 + 100_000)]
        gpu._supervisor.recovery._lineage.follow(sent)  # type: ignore[union-attr]
        begin = time.monotonic()
        shown = read(ref).facts["durability"]
        told_at = time.monotonic()
        assert ref.durability == "replayable"
        assert told_at - begin < (time.monotonic() - told_at) / 3
        assert shown == "not known yet, .durability waits for it"


def test_a_stale_buffer_a_failed_one_and_an_answer_that_is_no_array(lab: System) -> None:
    with System("host", recover="stale") as other:
        gpu = other.devices[0]
        ref = gpu.put(np.ones(3))
        ref.result()
        with pytest.raises(ContextLost):
            other.inject("kill").result(WAIT_S)
        other.ready()
        facts = read(ref).facts
        assert facts["state"] == "stale: the device is at generation 2"
        assert "durability" not in facts
        lost = read(gpu).facts["last loss"]
        assert re.match(r"cpu0 of lab\d+ lost its context", lost), "another system is open"
        failed = gpu.run(int, "no number")
        with pytest.raises(AccelError):
            failed.result(WAIT_S)
        assert read(failed).facts["state"] == "failed: UserCodeError"
        number = gpu.run(int, "7")
        assert number.result(WAIT_S) == 7
        assert read(number).facts["answer"] == "7"
    assert read(ref).facts["state"] == "closed"


def test_a_buffer_that_was_made_again_says_so(lab: System) -> None:
    gpu = lab.devices[0]
    ref = gpu.put(np.ones(3)).result()
    with pytest.raises(ContextLost):
        lab.inject("kill").result(WAIT_S)
    gpu.get(ref).result(WAIT_S)
    now = gpu.generation
    assert read(ref).facts["generation"] == f"{ref.generation}, made again in {now}"


def test_a_device_says_how_it_is(lab: System) -> None:
    gpu = lab.devices[0]
    gpu.ping().result(WAIT_S)
    markup = read(gpu)
    assert markup.texts["caption"][0].startswith("Device cpu0: ")
    assert markup.facts["state"] == "running"
    assert re.fullmatch(r"[\d.]+ ?\w* / [\d.]+ \w+ in use", markup.facts["memory"])


def test_a_message_reads_in_a_line_and_says_what_it_would_make(lab: System) -> None:
    gpu = lab.devices[0]
    a, b = (gpu.put(np.ones(shape, "f4")).result() for shape in ((2, 3), (3, 4)))
    message = blas.Gemm(a, b, alpha=2.0)
    assert repr(message) == f"Gemm(a=#{a.id} float32[2, 3], b=#{b.id} float32[3, 4], alpha=2.0)"
    assert read(message).facts["makes"] == "float32[2, 4]"
    assert read(message).facts["library"] == "blas"
    wrong = read(blas.Gemm(a, a)).facts["makes"]
    assert wrong.startswith("nothing: Gemm: k is 3 in a float32[2, 3]")
    assert repr(fft.R2C(a)) == f"R2C(x=#{a.id} float32[2, 3])"
    assert repr(blas.Gemm(np.ones(2), a)).startswith("Gemm(a=array(")  # type: ignore[arg-type]


def test_an_answer_says_what_it_is(lab: System) -> None:
    gpu = lab.devices[0]
    reply = gpu.get(gpu.put(np.ones((5, 2))))
    reply.result(WAIT_S)
    assert read(reply).facts == {"state": "done", "answer": "float64[5, 2]"}
    lost = lab.inject("library")
    with pytest.raises(AccelError):
        lost.result(WAIT_S)
    facts = read(lost).facts
    assert facts["error"].startswith("LibraryError: ")
    assert facts["what to do"] == lost.error.remedy


def test_every_error_says_what_to_do_as_the_reference_does() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| .* \| (.*) \|$",
        (ROOT / "docs/reference/errors.md").read_text(),
        re.MULTILINE,
    )
    told = {name: text.replace("`", "") for name, text in rows}
    kinds = [AccelError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    ours = {kind for kind in kinds if kind.__module__ == AccelError.__module__}
    for kind in ours - {AccelError, ActorError}:
        assert kind.remedy, kind
        assert kind.remedy == told[kind.__name__]


def test_an_error_is_a_table_with_the_traceback_folded_away() -> None:
    try:
        try:
            {"a": 1}["<b>"]
        except KeyError as cause:
            raise JournalError("first line\nsecond <line>") from cause
    except JournalError as error:
        markup = read(error)
    assert markup.texts["caption"] == ["JournalError: first line"]
    assert markup.facts["because"] == "KeyError: '<b>'"
    assert markup.facts["what to do"] == JournalError.remedy
    assert "test_display.py" in markup.facts["raised"]
    assert markup.texts["summary"] == ["The whole traceback"]
    second, story = markup.texts["pre"]
    assert second == "second <line>"
    assert "direct cause" in story


@pytest.fixture
def notebook() -> Iterator[Shell]:
    with shell() as opened:
        yield opened


def test_a_failed_cell_shows_the_line_the_cause_and_what_to_do(
    notebook: Shell, lab: System, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = lab.devices[0]
    notebook.ipython.user_ns.update(blas=blas, a=gpu.put(np.ones((2, 3), "f4")))
    notebook("x = 1\nc = blas.gemm(a, a)")
    assert isinstance(notebook.error, InvalidArgument)
    first, raised, remedy, hint = capsys.readouterr().out.strip().splitlines()
    assert first.startswith("InvalidArgument: Gemm: k is 3 in a float32[2, 3]")
    assert raised.split(maxsplit=1) == ["raised:", "cell 1, line 2: c = blas.gemm(a, a)"]
    assert remedy.strip() == f"what to do: {InvalidArgument.remedy}"
    assert hint.strip() == "traceback:  %tb shows the whole"
    assert notebook.published == [], "a terminal has nothing to fold"
    notebook("%tb")
    whole = capsys.readouterr().out
    assert "Traceback (most recent call last)" in whole
    assert "in infer" in whole
    assert "----> 2 c = blas.gemm(a, a)" in whole


def test_in_a_notebook_the_whole_traceback_is_below_and_folded(
    notebook: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook.ipython, "kernel", object(), raising=False)
    lost: Reply[None] = Reply()
    lost.reject(StaleRef("it is gone"))
    notebook.ipython.user_ns["lost"] = lost
    notebook("lost.result()")
    (data,) = notebook.published
    markup = Markup(data["text/html"])
    assert markup.tags == {"details", "summary", "pre"}
    (story,) = markup.texts["pre"]
    assert 'File "cell 1", line 1' in story
    assert "/IPython/core/" not in story
    assert story.endswith("accel_lab.errors.StaleRef: it is gone")
    notebook("1")
    assert len(notebook.published) == 1, "it is put below its own cell only"


def test_another_error_is_shown_as_ever(
    notebook: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook("1 / 0")
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert notebook.published == []


def test_outside_ipython_the_whole_is_told() -> None:
    with pytest.raises(StaleRef) as caught:
        raise StaleRef("it is gone")
    (told,) = caught.value._render_traceback_()
    assert told.startswith("Traceback (most recent call last)")


class Printer:
    """As much of IPython's pretty printer as a report uses."""

    said = ""

    def text(self, text: str) -> None:
        self.said += text


def test_reports_are_a_table_and_the_text_of_a_terminal() -> None:
    machine = Machine(
        accel_lab="1",
        python="3",
        system="Linux",
        cpu="a <cpu>",
        cores=2,
        device="cpu",
        driver="",
        libraries={},
    )
    row = Row(name="ping", group="ping", title="<ping>", unit="µs", ours=3.0, rounds=1)
    bench = BenchReport(backend="host", quick=True, machine=machine, rows=(row,), notes=("a & b",))
    markup = Markup(bench._repr_html_().replace("<br>", ""))
    assert markup.tags <= PLAIN
    assert "<ping>" in markup.texts["th"]
    assert "3 µs" in markup.texts["td"]
    doctor = DoctorReport(version="1", host=True, cuda=False, findings=())
    assert read(doctor).texts["caption"][0].startswith("accel_lab 1: ready")
    for report in (bench, doctor):
        printer = Printer()
        report._repr_pretty_(printer, cycle=False)
        assert printer.said == str(report)
