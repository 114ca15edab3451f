"""Installed in each of the ways there are, the package finds its front end and its tutorials."""

import json
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from accel_lab import tutorials
from accel_lab.views.widget import assets
from tests.bare_python import BarePython
from tests.conftest import require
from tests.project import NEXT, ROOT

pytestmark = pytest.mark.timeout(150)  # long: it begins before files of short tests

LIST_ASSETS = """
import json, sys
import accel_lab.errors
from accel_lab import tutorials
from accel_lab.views.widget import assets
print(json.dumps({
    "package": accel_lab.errors.__file__,
    "tutorials": {path.name: path.read_text() for path in tutorials.packaged().glob("*.ipynb")},
    "front end": {name: assets.source(name) for name in sys.argv[1:]},
}))
"""
WIDGETS = ROOT / "widgets"
MODULES = sorted(path.relative_to(WIDGETS).as_posix() for path in WIDGETS.rglob("*.js"))


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(python: BarePython) -> tuple[str | Path, ...]:
    return (sys.executable, "-m", "pip", "--python", python.python)


def tracked(folder: str) -> set[str]:
    """List what a clean checkout has in a folder, and what the next commit may add."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", folder)
    present = {line for line in listed.splitlines() if (ROOT / line).is_file()}
    return {line.removeprefix(f"{folder}/") for line in present}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a source archive from the checkout, and a wheel from that archive."""
    require("wheel")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module", params=["wheel", "folder", "editable"])
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, wheel: Path
) -> BarePython:
    """Install accel_lab into a fresh virtual environment that borrows all else from this one."""
    what = {"wheel": (wheel,), "folder": (ROOT,), "editable": ("-e", ROOT)}[request.param]
    python = BarePython(tmp_path_factory.mktemp(request.param) / "venv")
    python.see_all_but_the_checkout()
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    run(*pip(python), "install", *options, *what)
    return python


def test_front_end_and_tutorials_are_found(installed: BarePython, tmp_path: Path) -> None:
    done = installed.run("-c", LIST_ASSETS, *MODULES, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    package = Path(found["package"])
    assert package.is_relative_to(installed.site_packages) or package.is_relative_to(ROOT)
    assert found["front end"] == {name: assets.source(name) for name in MODULES}
    assert found["tutorials"] == {
        path.name: path.read_text() for path in tutorials.packaged().glob("*.ipynb")
    }


def test_command_is_installed_and_knows_its_version(
    installed: BarePython, wheel: Path, tmp_path: Path
) -> None:
    done = installed.run(installed.python.with_name("accel-lab"), "doctor", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["version"] == wheel.name.split("-")[1]
    assert report["host"]


def test_doctors_command_finds_the_installed_package(installed: BarePython) -> None:
    said = run(*pip(installed), "install", "--dry-run", "--no-index", "accel-lab[lab]")
    assert "Would install" not in said
    assert "Requirement already satisfied: jupyterlab" in said


@pytest.mark.parametrize("folder", ["docs/skills", "notebooks", "widgets"])
def test_wheel_holds_what_a_clean_checkout_has(wheel: Path, folder: str) -> None:
    inside = f"accel_lab/_{Path(folder).name}/"
    names = {name.removeprefix(inside) for name in ZipFile(wheel).namelist() if inside in name}
    assert names == tracked(folder)


def test_wheel_holds_the_package_its_types_and_its_licence(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    own = {name for name in names if name.startswith("accel_lab/") and "/_" not in name}
    expected = {f"accel_lab/{name}" for name in tracked("accel_lab") if "/_" not in f"/{name}"}
    assert own == expected
    assert "accel_lab/py.typed" in own
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_jupyterlab_finds_the_extension(installed: BarePython, tmp_path: Path) -> None:
    """The wheel has it as data of the environment, beside which JupyterLab's own command looks."""
    program = (
        "import sys; from jupyterlab.labextensions import main; sys.argv[1:] = ['list']; main()"
    )
    done = installed.run("-c", program, cwd=tmp_path)
    assert re.search(r"accel-lab v\S+ .*enabled.*OK", done.stdout + done.stderr)
    folder = installed.python.parents[1] / "share" / "jupyter" / "labextensions" / "accel-lab"
    manifest = json.loads((folder / "package.json").read_text())
    assert manifest["version"] == NEXT
    assert (folder / manifest["jupyterlab"]["_build"]["load"]).is_file()
    assert json.loads((folder / "schemas" / "accel-lab" / "plugin.json").read_text())["properties"]
    files = {path.relative_to(folder / "static").as_posix() for path in folder.rglob("static/**/*")}
    assert tracked("widgets") <= files
