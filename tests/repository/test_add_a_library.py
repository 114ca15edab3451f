"""The library on the page `add-a-library` works, added to a copy of the project as it says."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import ROOT, UNFINISHED
from tests.repository.test_docs import DOCS, Block, blocks

pytestmark = pytest.mark.timeout(300)  # long: it begins before files of short tests

PAGE = DOCS / "how-to" / "add-a-library.md"
FILE = re.compile(r"# (?P<path>\S+/\S+\.py)\n")
COPIED = ("accel_lab", "docs", "tests")
LINKED = ("README.md", "notebooks", "pyproject.toml", "widgets")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the project, and follow the page."""
    folder = tmp_path_factory.mktemp("project")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=UNFINISHED)
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    for block in blocks(PAGE):
        if block.kind == "diff":
            _register(folder, block.code)
        elif found := file_of(block):
            (folder / found).write_text(block.code.partition("\n")[2])
    return folder


def file_of(block: Block) -> str:
    """Return the file that a block is, as its first line says; none if it is a session."""
    found = FILE.match(block.code) if block.kind == "python" else None
    return found["path"] if found else ""


def _register(folder: Path, diff: str) -> None:
    for path, lines in _files(diff.splitlines()):
        text = (folder / path).read_text()
        anchor, added = "", ""
        for line in [*lines, " "]:
            if line.startswith("+"):
                added += line[1:] + "\n"
                continue
            if added:
                here = f"{anchor or line[1:]}\n"
                assert text.count(f"\n{here}") == 1, f"{path} should have this line once: {here}"
                text = text.replace(here, here + added if anchor else added + here)
            anchor, added = line[1:], ""
        (folder / path).write_text(text)


def _files(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    starts = [at for at, line in enumerate(lines) if line.startswith("+++ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield lines[start].removeprefix("+++ "), lines[start + 1 : end]


def run(project: Path, *command: str, text: str = "") -> None:
    """Run Python in the copy, which comes first of all places that have the package."""
    path = os.pathsep.join([str(project), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *command],
        env=os.environ | {"PYTHONPATH": path},
        input=text,
        capture_output=True,
        text=True,
        cwd=project,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_its_tests_pass(project: Path) -> None:
    """The contract of the library, and the tests that would tell what was forgotten."""
    files = ("contract/test_scan.py", "repository/test_libraries.py", "repository/test_floors.py")
    chosen = [f"tests/{name}" for name in files]
    chosen.append("tests/repository/test_docs.py::test_reference_lists_every_message")
    run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen)


def test_it_keeps_the_contract_of_every_library(project: Path) -> None:
    suite = (f"tests/contract/test_declared{part}.py" for part in ("", "_operands"))
    run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suite, "-k", "scan.Cumsum")


def test_its_session_runs(project: Path) -> None:
    written = [block for block in blocks(PAGE) if block.kind == "python" and not file_of(block)]
    (session,) = [block for block in written if "runs it" in block.not_run]
    run(project, "-W", "error", "-", text=session.code)


def test_what_its_outlines_import_is_there() -> None:
    (names,) = [block for block in blocks(PAGE) if "imports it" in block.not_run]
    exec(names.code, {})  # noqa: S102 - of this project


def test_its_files_are_in_style(project: Path) -> None:
    paths = [path for block in blocks(PAGE) if (path := file_of(block))]
    run(project, "-m", "ruff", "check", "--no-cache", *paths)
    run(project, "-m", "ruff", "format", "--check", "--no-cache", *paths)


@pytest.mark.slow
def test_its_types_fit(project: Path) -> None:
    run(project, "-m", "mypy", "--cache-dir", str(project / ".mypy_cache"))
