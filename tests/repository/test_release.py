"""What is released: the same bytes each time, all that PyPI asks for, its version and its parts."""

import json
import os
import re
import resource
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from packaging.metadata import Metadata
from packaging.version import Version

from tests.bare_python import BarePython
from tests.conftest import require
from tests.project import NEXT, PROJECT, ROOT, requirements

pytestmark = pytest.mark.timeout(110)
SCRIPT = ROOT / ".ci" / "release"
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a program that is found beside this interpreter, too, and return what it has said."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=os.environ | {"PATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def committed(folder: Path, *tags: str) -> Path:
    """Make a repository of what decides the version, with one commit and these tags."""
    folder.mkdir()
    (folder / ".ci").mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", ".ci/long_description.py"):
        shutil.copy(ROOT / name, folder / name)
    run("git", "init", "--quiet", cwd=folder)
    run("git", "add", "--all", cwd=folder)
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    run("git", *who, "commit", "--quiet", "--message=all", cwd=folder)
    for tag in tags:
        run("git", "tag", tag, cwd=folder)
    return folder


def version(folder: Path) -> str:
    return run(sys.executable, "-m", "hatchling", "version", cwd=folder).strip()


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build twice and check, as a release does, with the tools that are here."""
    require("wheel")
    folder = tmp_path_factory.mktemp("release") / "dist"
    run(SCRIPT, "build", folder, "--no-isolation")
    return folder


def test_a_tag_is_the_version(tmp_path: Path) -> None:
    require("wheel")
    assert version(committed(tmp_path / "tagged", "v3.2.1")) == "3.2.1"
    assert version(committed(tmp_path / "candidate", "v3.2.1rc2", "unrelated")) == "3.2.1rc2"


def test_without_a_tag_it_is_the_version_to_come(tmp_path: Path) -> None:
    require("wheel")
    folder = committed(tmp_path / "untagged")
    run("git", "clone", "--quiet", "--depth=1", folder.as_uri(), tmp_path / "shallow")
    for checkout in (folder, tmp_path / "shallow"):
        found = Version(version(checkout))
        assert (found.base_version, found.is_devrelease) == (NEXT, True)
        assert (found.local or "").startswith("g")
    shutil.rmtree(folder / ".git")
    assert version(folder) == f"{NEXT}.dev0"


def test_builds_are_the_same_and_pass_the_checks(dist: Path) -> None:
    """The script has compared them; here is what it would miss if it built nothing."""
    (archive,) = dist.glob("*.tar.gz")
    (wheel,) = dist.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert archive.name.removesuffix(".tar.gz") == wheel.name.removesuffix("-py3-none-any.whl")
    with ZipFile(wheel) as opened:
        (name,) = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Metadata.from_email(opened.read(name))
    assert metadata.license_expression == PROJECT["license"]
    assert metadata.description == (ROOT / "README.md").read_text()


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old.whl").touch()
    done = subprocess.run(
        [SCRIPT, "build", tmp_path], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 1
    assert "is not empty" in done.stderr


def test_a_wheel_needs_only_the_core_and_its_parts_are_listed(dist: Path, tmp_path: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    python = BarePython(tmp_path / "venv")
    python.link(PROJECT["dependencies"])
    pip = (sys.executable, "-m", "pip", "--python", python.python)
    # Without an index it refuses a dependency that is not there.
    run(*pip, "install", "--quiet", "--no-index", "--no-compile", wheel)
    done = python.run(python.python.with_name("accel-lab"), "doctor", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["host"], done.stderr

    run(SCRIPT, "sbom", tmp_path, python.python)
    listed = json.loads((tmp_path / "accel-lab.cdx.json").read_text())
    assert listed["bomFormat"] == "CycloneDX"
    found = {part["name"].lower().replace("_", "-"): part for part in listed["components"]}
    assert {"accel-lab", *requirements()} <= found.keys()
    assert found["accel-lab"]["version"] == wheel.name.split("-")[1]
    assert "pytest" not in found


def script(name: str) -> dict[str, Any]:
    """Run a file of `.ci` as a module, and return its names."""
    return runpy.run_path(str(ROOT / ".ci" / name))


def test_on_an_index_the_links_of_the_readme_lead_to_the_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require("wheel")
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/lab")
    monkeypatch.setenv("GITHUB_SHA", "0a1b2c")
    metadata: dict[str, Any] = {}
    script("long_description.py")["LongDescription"](str(ROOT), {}).update(metadata)
    shown, text = metadata["readme"]["text"], (ROOT / "README.md").read_text()
    targets = [re.findall(r"\]\(([^)\s]+)\)", page) for page in (shown, text)]
    assert len(targets[0]) == len(targets[1]) > 20
    for on_index, here in zip(*targets, strict=True):
        if here.startswith(("https://", "#")):
            assert on_index == here
            continue
        way = "raw" if here.endswith(".png") else "blob"
        assert on_index == f"https://github.com/someone/lab/{way}/0a1b2c/{here}"
        assert (ROOT / here.partition("#")[0]).exists()


PAGE = (
    "# Changelog\n\n## 0.2.0\n\n- One.\n- Two,\n  on two lines.\n\n## 0.1.0\n\nThe first version.\n"
)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.2.0", PAGE.replace("lines.\n", "lines.\n- A.\n- B\n  b.\n- C.\n")),
        ("0.3.0", PAGE.replace("## 0.2", "## 0.3.0\n\n- A.\n- B\n  b.\n- C.\n\n## 0.2")),
    ],
)
def test_fragments_become_a_part_of_the_changelog(
    tmp_path: Path, version: str, expected: str
) -> None:
    fragments = tmp_path / "changelog.d"
    fragments.mkdir()
    (tmp_path / "changelog.md").write_text(PAGE)
    (fragments / ".gitkeep").touch()
    (fragments / "b.md").write_text("- C.\n")
    (fragments / "a.md").write_text("- A.\n- B\n  b.\n")
    collect = script("changelog")["collect"]
    assert collect(tmp_path, version) == 2
    assert (tmp_path / "changelog.md").read_text() == expected
    assert [one.name for one in fragments.iterdir()] == [".gitkeep"]
    (fragments / "c.md").write_text("A sentence alone.\n")
    with pytest.raises(SystemExit, match=r"c\.md is no list of items"):
        collect(tmp_path, version)
    assert (tmp_path / "changelog.md").read_text() == expected


def test_every_fragment_is_a_list_of_items() -> None:
    item = script("changelog")["ITEM"]
    for fragment in (ROOT / "docs" / "changelog.d").glob("*.md"):
        assert item.fullmatch(fragment.read_text()), fragment


def test_importing_accel_lab_costs_less_than_importing_numpy() -> None:
    """In time of the processor, which a busy machine does not change much."""

    def cost(code: str) -> float:
        def once() -> float:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        return min(once() for _ in range(4))

    assert cost("import accel_lab") < cost("import numpy")


def test_the_workflow_publishes_only_what_was_tested() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    assert set(jobs["publish"]["needs"]) == {"test", "build"}
    assert jobs["publish"]["permissions"]["id-token"] == "write"
    assert "refs/tags/v" in jobs["publish"]["if"]
    steps = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert any(".ci/release build" in step for step in steps)
    assert any(".ci/release sbom" in step for step in steps)
    assert any(".ci/run" in step.get("run", "") for step in jobs["test"]["steps"])
