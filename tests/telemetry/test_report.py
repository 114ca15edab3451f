"""The report of a session is one HTML file that names what happened, and no secret."""

import re
import socket
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from accel_lab import views
from accel_lab.actor.events import ActorRestarted
from accel_lab.compute.events.lifecycle import ContextLost, OutputPrinted, RequestFailed
from accel_lab.compute.events.samples import (
    CellRun,
    HealthSampled,
    NotebookSampled,
    Reading,
    Slice,
    WorkTraced,
)
from accel_lab.errors import RecordingError
from accel_lab.telemetry import report
from accel_lab.telemetry.secrets import GONE, scrubber
from accel_lab.views.scene.observer import observer_of
from tests.views.made_up import Lab
from tests.views.made_up import lab as made_up

T0 = 1_700_000_000.0
SECRETS = [
    "hunter2-Xy", "ghp_" + "a1B2" * 9, "hf_" + "q9" * 12, "sk-" + "Zz9_" * 6, "AKIA" + "ABCD" * 4,
    "s3cr3t-in-url", "eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", "bearer-0123456789",
]  # fmt: skip
TEXTS = [
    f"password={SECRETS[0]} rest", f"git clone with {SECRETS[1]}", f"token {SECRETS[2]}",
    f"key {SECRETS[3]}", f"id {SECRETS[4]}", f"postgresql://ada:{SECRETS[5]}@db.example/x",
    f"jwt {SECRETS[6]}", f"Authorization: Bearer {SECRETS[7]}",
]  # fmt: skip


class Page(HTMLParser):
    """Checks that every tag is closed, and gathers what is said and what is asked of others."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self.outside: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.outside += [f"{name}={value}" for name, value in attrs if name in {"src", "href"}]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def filled() -> Lab:
    lab = made_up(2)
    done = tuple(
        Slice(seq, "Gemm<script>", "blas", "kernel", T0 + seq, T0 + seq + 0.5) for seq in range(4)
    )
    lab.seen.append(WorkTraced(at=T0, device="gpu0", generation=1, done=done, running=()))
    for text in TEXTS:
        lab.events.publish(
            ContextLost(at=T0 + 2, device="gpu1", generation=1, cause=text, in_flight=0)
        )
    lab.events.publish(ActorRestarted(path="lab/x", cause=ValueError("boom"), attempt=1, delay_s=0))
    lab.events.publish(
        RequestFailed(device="gpu0", message="Gemm #3", error=f"{Path.home()}/data <b>", cell=4)
    )
    lab.events.publish(OutputPrinted(device="gpu0", stream="stdout", text="printed-words", cell=4))
    observer = observer_of(lab)
    with observer.lock:
        observer._take(NotebookSampled(cells=(CellRun(4, "cell-text-itself", T0, T0 + 1),)))
        why = Reading("power", None, "W", why="not supported")
        observer._take(HealthSampled(source="gpu0", model="H100", readings=(why,)))
    return lab


def test_a_session_is_one_page_that_needs_no_other(tmp_path: Path) -> None:
    text = report(filled(), tmp_path / "report.html").read_text()
    page = Page(text)
    assert not page.open
    assert "script" not in page.tags
    assert page.outside == []
    said = " ".join(page.text)
    for part in (
        "Timeline",
        "Faults",
        "Versions",
        "numpy",
        "n/a",
        "not supported",
        "ValueError: boom",
    ):
        assert part in said, part
    (drawing,) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    tree = ET.fromstring(drawing)  # noqa: S314 - it is ours
    bars = [one for one in tree if one.tag == "rect"]
    assert [float(one.get("width", 0)) for one in bars] == [
        pytest.approx(1000 * 0.5 / 3.5, abs=0.01)
    ] * 4
    assert sum(one.tag == "line" for one in tree) == len(TEXTS)
    assert "2000.000" in said  # milliseconds of the four together


def test_secrets_cells_and_what_was_printed_are_left_out(tmp_path: Path) -> None:
    text = report(filled(), tmp_path / "report.html").read_text()
    for secret in (*SECRETS, "cell-text-itself", "printed-words", str(Path.home())):
        assert secret not in text, secret
    assert "~/data" in text


@pytest.mark.parametrize(("text", "secret"), list(zip(TEXTS, SECRETS, strict=True)))
def test_what_looks_like_a_secret_goes_and_the_rest_stays(text: str, secret: str) -> None:
    scrubbed = scrubber()(text)
    assert secret not in scrubbed
    assert GONE in scrubbed
    assert scrubbed.split()[0].partition(GONE)[0].rstrip("=:") in text


def test_plain_texts_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "node17")
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    scrub = scrubber()
    for text in (
        "Gemm #12 on blas",
        "CUDA error 700 (illegal address)",
        "adapter",
        "a=b",
        "node170",
    ):
        assert scrub(text) == text
    assert scrub("on node17 by ada today") == "on [machine] by [user] today"


def test_the_command_writes_the_report_of_a_recording(tmp_path: Path) -> None:
    with views.record(filled(), tmp_path / "session.jsonl"):
        pass
    done = subprocess.run(
        [sys.executable, "-m", "accel_lab.cli", "report", "session.jsonl", "-o", "out.html"],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "out.html" in done.stdout
    text = (tmp_path / "out.html").read_text()
    assert "Gemm&lt;script&gt;" in text
    assert SECRETS[0] not in text


def test_a_report_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot be written"):
        report(made_up(1), tmp_path / "nowhere" / "report.html")


def test_an_empty_session_has_a_page(tmp_path: Path) -> None:
    page = Page(report(made_up(1), tmp_path / "report.html").read_text())
    assert not page.open
    assert "No work was traced." in " ".join(page.text)
