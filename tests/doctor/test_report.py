"""The report: what it promises to people, to notebooks and to programs."""

import sys
from html.parser import HTMLParser

import msgspec
import pytest
from rich.console import Console

from accel_lab.doctor import Finding, Report, examine
from accel_lab.doctor.finding import HOST_AND_CUDA
from tests.cells import outputs_of


def test_host_can_run_here() -> None:
    assert examine().host


def test_names_are_unique() -> None:
    names = [finding.name for finding in examine().findings]
    assert len(set(names)) == len(names)


def test_every_gap_says_what_it_disables() -> None:
    for finding in examine().findings:
        assert (finding.state == "ok") == (not finding.disables), finding.name
        assert not finding.blocks or finding.state == "missing", finding.name


def test_every_missing_package_has_its_command() -> None:
    for finding in examine().findings:
        if finding.topic in {"core", "cuda", "jupyter"} and finding.state != "ok":
            assert finding.command, finding.name


def test_finding_is_looked_up_by_name() -> None:
    report = examine()
    assert report["python"].found.startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    with pytest.raises(KeyError, match="nvidia-settings"):
        report["nvidia-settings"]


def test_json_keeps_its_layout() -> None:
    report = examine()
    plain = msgspec.json.decode(report.to_json())
    assert list(plain) == ["schema", "version", "host", "cuda", "findings"]
    assert plain["schema"] == 1
    for finding in plain["findings"]:
        assert list(finding) == [
            "topic",
            "name",
            "state",
            "found",
            "size_bytes",
            "disables",
            "command",
            "blocks",
        ]
    assert msgspec.json.decode(report.to_json(), type=Report) == report


def test_json_keeps_its_names() -> None:
    by_topic: dict[str, list[str]] = {}
    for finding in examine().findings:
        by_topic.setdefault(finding.topic, []).append(finding.name)
    assert list(by_topic) == ["machine", "core", "gpu", "cuda", "jupyter"]
    assert by_topic["machine"] == [
        "python",
        "kernel",
        "cores",
        "memory",
        "page-locked limit",
        "shared memory",
        "compiler",
    ]
    assert by_topic["gpu"][0] == "driver"
    assert by_topic["cuda"][-9:] == [
        "cupy",
        "cuda-bindings",
        "cuda-core",
        "nvmath-python",
        "cublas",
        "nvrtc",
        "nccl4py",
        "cuda-cccl",
        "nccl",
    ]
    assert by_topic["jupyter"] == [
        "jupyterlab",
        "ipykernel",
        "ipywidgets",
        "anywidget",
        "panel",
        "prometheus-client",
    ]


def report_of(*findings: Finding) -> Report:
    return Report(version="1.0", host=True, cuda=False, findings=findings)


MISSING = Finding(
    topic="cuda",
    name="cupy",
    state="missing",
    found="<none>",
    disables="the cuda backend",
    command=f'pip install "accel-lab[cuda13]"{" --and-a-long-option" * 8}',
    blocks=("cuda",),
)


def test_text_leaves_a_command_on_one_line_to_copy() -> None:
    assert f"  {MISSING.command}" in str(report_of(MISSING)).splitlines()


def test_text_gives_one_command_for_all_that_it_installs() -> None:
    other = msgspec.structs.replace(MISSING, name="nvmath-python")
    text = str(report_of(MISSING, other))
    assert text.count(MISSING.command) == 1
    assert "cupy, nvmath-python" in text
    assert text.splitlines()[0] == "accel_lab 1.0: ready without a GPU (see cupy, nvmath-python)"


def test_text_says_what_does_not_work_without_one_or_several() -> None:
    other = msgspec.structs.replace(MISSING, name="cublas")
    driver = msgspec.structs.replace(MISSING, name="driver", command="")
    lines = str(report_of(driver, MISSING, other)).splitlines()
    assert "Not available because of driver: the cuda backend" in lines
    assert "Not available because of cupy, cublas: the cuda backend" in lines


def test_verdict_comes_first_and_is_one_line() -> None:
    many = [msgspec.structs.replace(MISSING, name=name) for name in ("cupy", "a", "b", "c", "d")]
    for report, verdict in (
        (msgspec.structs.replace(report_of(), cuda=True), "ready"),
        (report_of(*many), "ready without a GPU (see cupy, a and 3 more)"),
    ):
        assert str(report).splitlines()[0] == f"accel_lab 1.0: {verdict}"


def test_verdict_of_a_machine_that_cannot_run_says_what_to_do() -> None:
    kernel = Finding(
        topic="machine", name="kernel", state="missing", found="Linux 4", blocks=HOST_AND_CUDA
    )
    numpy = msgspec.structs.replace(kernel, name="numpy", command="pip install x")
    unready = msgspec.structs.replace(report_of(kernel), host=False)
    assert unready.verdict == "not ready: see kernel"
    mended = msgspec.structs.replace(report_of(kernel, numpy), host=False)
    assert mended.verdict == "not ready: run pip install x"


def test_text_fits_a_terminal_but_for_its_commands() -> None:
    report = examine()
    console = Console(width=80, color_system=None, force_terminal=False)
    with console.capture() as shown:
        console.print(report, crop=False)
    commands = {finding.command for finding in report.findings}
    lines = shown.get().splitlines()
    assert not [line for line in lines if len(line) > 80 and line.strip() not in commands]


class Table(HTMLParser):
    """Collects what a screen reader would announce."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.scopes: list[str | None] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)
        if tag == "th":
            self.scopes.append(dict(attrs).get("scope"))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_notebook_shows_one_plain_table() -> None:
    table = Table(report_of(MISSING)._repr_html_())
    assert not table.open
    assert set(table.tags) == {"table", "caption", "thead", "tbody", "tr", "th", "td", "code"}
    assert table.scopes == ["col"] * 5 + ["row"]
    assert table.text[-4:] == ["cupy", MISSING.found, MISSING.disables, MISSING.command]


def test_cell_of_a_real_kernel_has_one_output_without_escape_codes() -> None:
    (shown,), (printed,) = outputs_of(
        "from accel_lab.doctor import examine\nexamine()", "print(str(examine()), end='')"
    )
    assert set(shown.data) == {"text/plain", "text/html"}
    for text in (*shown.data.values(), printed.text):
        assert "\x1b" not in text
        assert "accel_lab" in text
        assert "ready" in text
