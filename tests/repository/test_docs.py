"""What the documentation says is what a test runs.

All Python blocks of a page are one program, with a namespace of its own. Those that need a piece of
the machine say so, `<!-- needs: cuda -->`, and are a program for themselves. A block that cannot be
run says why, `<!-- not run: reason -->`.
"""

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import accel_lab
import accel_lab.blueprints.agents
import accel_lab.blueprints.patterns
import accel_lab.blueprints.realtime
import accel_lab.blueprints.serving
import accel_lab.journal.events
import accel_lab.onnx.errors
import accel_lab.pipeline.events
import accel_lab.views
from accel_lab import errors
from accel_lab.actor.events import Event
from accel_lab.cli import app
from accel_lab.compute.arrays.dtypes import NAMES
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import AccelError
from accel_lab.libraries.authoring.registration import function_name, messages, row
from accel_lab.library_modules import LIBRARIES, module_of
from tests.cells import outputs_of
from tests.conftest import require
from tests.pages import Pages
from tests.project import NEXT, PROJECT, ROOT, requirements

DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "changelog.d")]
SKILLS = sorted(DOCS.glob("skills/*/SKILL.md"))
MODULES = {name: module_of(name) for name in LIBRARIES}
REFERENCE = DOCS / "reference"
DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))
FENCE = re.compile(r"^```(?P<kind>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
REMARK = re.compile(r"<!-- (?P<what>needs|not run): (?P<text>[^>]+) -->\n\Z")
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


class Block(NamedTuple):
    """One fenced block, and what the remark above it says."""

    kind: str
    code: str
    line: int
    needs: str
    not_run: str


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in FENCE.finditer(text):
        remark = REMARK.search(text[: found.start()])
        said = {remark["what"]: remark["text"]} if remark else {}
        line = text[: found.start("code")].count("\n") + 1
        yield Block(
            found["kind"], found["code"], line, said.get("needs", ""), said.get("not run", "")
        )


def program(page: Path, needs: str = "") -> str:
    """Join the blocks that can run, each at its own line, so that a traceback names the page's."""
    source = ""
    for block in blocks(page):
        if block.kind == "python" and not block.not_run and block.needs == needs:
            source += "\n" * (block.line - 1 - source.count("\n")) + block.code
    return source


def programs() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for needs in sorted({block.needs for block in blocks(page)}):
            if program(page, needs):
                yield page, needs


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def pages() -> Iterator[Pages]:
    running = Pages()
    yield running
    running.close()


@pytest.mark.parametrize(
    ("page", "needs"),
    list(programs()),
    ids=lambda value: name(value) if isinstance(value, Path) else value,
)
def test_python_on_a_page_runs(page: Path, needs: str, pages: Pages, tmp_path: Path) -> None:
    if needs:
        require(needs)
    pages.run(program(page, needs), name(page), tmp_path)


def test_every_skill_has_a_program() -> None:
    assert {page for page, _ in programs()} >= set(SKILLS)


def test_a_program_that_fails_is_told_and_costs_no_other(tmp_path: Path) -> None:
    """Nor has it what the one before it left in names, systems, folders and the environment."""
    left = "import os\nfrom accel_lab import System\nos.environ['LEFT'] = '1'\nlab = System('host')"
    pages = Pages()
    try:
        pages.run(left, "first", tmp_path)
        looks = "import os\nfrom accel_lab import open_systems\nassert not open_systems.running()\n"
        pages.run(f"{looks}assert 'LEFT' not in os.environ", "second", tmp_path)
        with pytest.raises(AssertionError, match=r"third(.|\n)*line 2(.|\n)*name 'lab'(.|\n)*seen"):
            pages.run("print('seen', flush=True)\nlab", "third", tmp_path)
        with pytest.raises(AssertionError, match="fourth: no end"):
            pages.run("import time; time.sleep(60)", "fourth", tmp_path, 0.2)
        with pytest.raises(AssertionError, match="fifth: it ended"):
            pages.run("import os; os._exit(0)", "fifth", tmp_path)
        pages.run("await __import__('asyncio').sleep(0)", "sixth", tmp_path)
    finally:
        pages.close()


def test_what_a_program_leaves_in_temporary_folders_is_in_its_own(
    pages: Pages, tmp_path: Path
) -> None:
    source = "import tempfile\nfrom pathlib import Path\nPath(tempfile.mkdtemp(), 'left').touch()\n"
    pages.run(source, "leaving", tmp_path)
    assert [one.name for one in tmp_path.rglob("left")] == ["left"]


@pytest.mark.parametrize("page", SKILLS, ids=name)
def test_a_skill_says_its_name_and_when_to_use_it(page: Path) -> None:
    _, front, body = page.read_text().split("---\n", 2)
    about = yaml.safe_load(front)
    assert about.keys() == {"name", "description"}
    assert about["name"] == f"accel-lab-{page.parent.name}"
    assert 20 < len(about["description"]) <= 120
    assert len(body.splitlines()) <= 60


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_block_that_is_not_run_is_python_all_the_same(page: Path) -> None:
    for block in blocks(page):
        if block.kind == "python":
            compile(block.code, name(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.finditer(FENCE.sub("", page.read_text())):
        target, _, anchor = link["target"].partition("#")
        if target.startswith("https://"):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link["target"]
        assert path.is_relative_to(ROOT), link["target"]
        if anchor:
            assert anchor in anchors(path), link["target"]


def anchors(page: Path) -> set[str]:
    """Return GitHub's anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    ahead = [README]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        for link in LINK.finditer(page.read_text()):
            path = (page.parent / link["target"].partition("#")[0]).resolve()
            if path.is_dir() and path.is_relative_to(DOCS):
                ahead += path.rglob("*.md")
            elif path.suffix == ".md" and path.is_file():
                ahead.append(path)
    assert set(PAGES) <= reached


def test_guides_are_all_in_their_index() -> None:
    index = DOCS / "how-to" / "index.md"
    linked = {link["target"] for link in LINK.finditer(index.read_text())}
    assert {page.name for page in index.parent.glob("*.md")} - {index.name} <= linked


def test_public_names_are_all_on_their_page() -> None:
    page = (REFERENCE / "api.md").read_text()
    assert (sections("api.md") - {"Reply"}) | set(LIBRARIES) == set(accel_lab.__all__)
    for shown in accel_lab.actor.__all__:
        assert f":: accel_lab::actor.{shown}\n" in page, shown


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_on_a_page_exist(page: Path) -> None:
    commands = {
        command.name or command.callback.__name__
        for command in app.registered_commands
        if command.callback is not None
    }
    extras = set(PROJECT["optional-dependencies"])
    text = page.read_text()
    assert set(re.findall(r"(?:^|`|&& )accel-lab ([\w-]+)", text, re.MULTILINE)) <= commands
    for wanted in re.findall(r"\.\[([\w,]+)\]", text):
        assert set(wanted.split(",")) <= extras


def test_first_command_of_the_readme_is_within_thirty_lines() -> None:
    first = next(block for block in blocks(README) if block.kind == "bash")
    assert "accel-lab lab" in first.code
    assert first.line <= 30


def test_cells_of_the_readme_run_before_its_first_command() -> None:
    """`%%gpu` is what a CuPy user comes for, so it comes first, and it works when typed."""
    shown = [block for block in blocks(README) if block.code.startswith("%")]
    assert shown[-1].code.startswith("%%gpu")
    assert shown[-1].line < README.read_text().splitlines().index("## Try it")
    *_, last = outputs_of(*[block.code for block in shown], "gram.get().shape")
    assert last[-1]["data"]["text/plain"] == "(64, 64)"


def test_ci_runs_the_test_command_of_the_readme() -> None:
    command = 'pip install -e ".[lab,test]" && pytest'
    assert command in README.read_text()
    run = (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^pip install .*--editable \"\.\[lab,test\]\"", run, re.MULTILINE)
    assert re.search(r"^\s*timeout .* pytest ", run, re.MULTILINE)


# The reference: one row for each class, with the first line of its docstring.


def test_reference_lists_every_error() -> None:
    _lists("errors.md", [_error_row(kind) for kind in _below(AccelError)])


def test_reference_draws_the_tree_of_errors() -> None:
    assert errors.__doc__ is not None
    drawn = [line.strip() for line in errors.__doc__.splitlines() if "──" in line]
    page = (REFERENCE / "errors.md").read_text()
    assert [line.strip() for line in page.splitlines() if "──" in line] == drawn


def test_reference_lists_every_event() -> None:
    _lists("events.md", [_event_row(kind) for kind in _below(Event)])


def test_reference_lists_every_message() -> None:
    rows = {kind: _message_row(kind) for kind in messages() if kind.library in LIBRARIES}
    shown = sections("messages.md")
    _lists("messages.md", [row for kind, row in rows.items() if kind.library in shown])


def test_a_library_without_a_section_is_given_one() -> None:
    conf = runpy.run_path(str(DOCS / "conf.py"))
    for name in ("messages.md", "api.md"):
        page = (REFERENCE / name).read_text()
        assert "of every other library -->" in page
        whole = conf["others"](page.replace("## fft\n", ""))
        assert set(re.findall(r"^## (\w+)$", whole, re.MULTILINE)) >= set(LIBRARIES)
    assert conf["others"]("<!-- functions of every other library -->").startswith(
        "## array\n\n<!-- f"
    )
    for kind in messages():
        if kind.library in LIBRARIES:
            assert f"\n{row(kind)}" in conf["table"](kind.library)


def sections(page: str) -> set[str]:
    return set(re.findall(r"^## (\w+)$", (REFERENCE / page).read_text(), re.MULTILINE))


def test_reference_lists_every_dtype() -> None:
    page = (REFERENCE / "messages.md").read_text()
    assert ", ".join(f"`{name}`" for name in NAMES) in " ".join(page.split())


def _lists(page: str, rows: list[str]) -> None:
    """Assert that the tables of a page begin with exactly these rows, in any order."""
    lines = (REFERENCE / page).read_text().splitlines()
    for one in rows:
        assert any(line.startswith(one) for line in lines), f"{page} lacks this row: {one}"
    listed = [line for line in lines if line.startswith("| `")]
    extra = [line for line in listed if not line.startswith(tuple(rows))]
    assert not extra, f"{page} has rows of nothing: {extra}"


def _below(root: type[AccelError] | type[Event]) -> Iterator[type[AccelError] | type[Event]]:
    for kind in root.__subclasses__():
        if kind.__module__.startswith("accel_lab."):
            yield kind
            yield from _below(kind)


def _summary(kind: type) -> str:
    return " ".join((kind.__doc__ or "").partition("\n\n")[0].split())


def _error_row(kind: type) -> str:
    assert issubclass(kind, AccelError)
    return f"| `{kind.__name__}` | {kind.directive.value} | {_summary(kind)} |"


def _event_row(kind: type) -> str:
    assert issubclass(kind, Event)
    fields = ", ".join(f"`{field}`" for field in kind.__struct_fields__ if field != "at")
    return f"| `{kind.__name__}` | {fields} | {_summary(kind)} |"


def _message_row(kind: type[Operation[Any]]) -> str:
    module, function = MODULES[kind.library], function_name(kind)
    found = kind.grouped or callable(getattr(module, function, None))
    assert found, f"{module.__name__} has no {function}()"
    return row(kind)


# The decisions and the changelog.


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_is_a_context_a_choice_and_a_consequence(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert lines[0].startswith(f"# {int(page.name[:4])}. ")
    assert re.findall(r"^\*\*(\w+)\.\*\*", "\n".join(lines), re.MULTILINE) == [
        "Context",
        "Choice",
        "Consequence",
    ]


def test_every_dependency_has_its_reason() -> None:
    page = (DOCS / "decisions" / "0013-dependencies.md").read_text()
    for extra in ("", *PROJECT["optional-dependencies"]):
        for package in requirements(extra):
            shown = re.sub(r"-cuda\d+x$", "", package)
            assert f"`{shown}`" in page or f"`{shown.replace('-', '_')}`" in page, package


def test_changelog_begins_with_this_version() -> None:
    versions = re.findall(r"^## (\S+)", (DOCS / "changelog.md").read_text(), re.MULTILINE)
    assert versions[0] == NEXT
