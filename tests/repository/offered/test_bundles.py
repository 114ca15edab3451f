"""Bundles name extras that exist, and preludes bring what they promise and nothing heavy."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.project import PACKAGE, PROJECT, PYPROJECT, ROOT

EXTRAS = PROJECT["optional-dependencies"]
BUNDLES = ("cluster", "core-libs", "full-cuda12", "full-cuda13", "training")
OF_THEMSELVES = ("models", "observability", "serving")
PRELUDES = sorted(path.stem for path in (PACKAGE / "prelude").glob("[a-z]*.py"))
HEAVY = {"IPython", "cuda", "cupy", "duckdb", "jupyterlab", "onnx", "opentelemetry", "pandas"} | {
    "panel", "pyarrow", "ray", "scipy", "sklearn", "sqlalchemy", "starlette", "torch", "uvicorn"
}  # fmt: skip


def parts(extra: str) -> set[str]:
    """Return the extras of this project that an extra brings, itself too."""
    found = {extra}
    for line in EXTRAS[extra]:
        one = Requirement(line)
        if one.name == PROJECT["name"]:
            found = found.union(*map(parts, one.extras))
    return found


@pytest.mark.parametrize("bundle", BUNDLES)
def test_a_bundle_brings_extras_alone(bundle: str) -> None:
    (line,) = map(Requirement, EXTRAS[bundle])
    assert line.name == PROJECT["name"]
    assert parts(bundle) <= EXTRAS.keys()


def test_a_full_bundle_has_one_cuda_and_differs_in_nothing_else() -> None:
    twelve, thirteen = parts("full-cuda12"), parts("full-cuda13")
    assert twelve - thirteen == {"full-cuda12", "cuda12"}
    assert thirteen - twelve == {"full-cuda13", "cuda13"}
    conflicts = [{one["extra"] for one in pair} for pair in PYPROJECT["tool"]["uv"]["conflicts"]]
    for left in ("cuda12", "full-cuda12"):
        for right in ("cuda13", "full-cuda13"):
            assert {left, right} in conflicts


def test_the_check_resolves_every_bundle() -> None:
    script = (ROOT / ".ci" / "bundles").read_text()
    (resolved,) = re.findall(r"^for bundle in (.+); do$", script, re.MULTILINE)
    assert set(resolved.split()) == {*BUNDLES, *OF_THEMSELVES}


@pytest.mark.parametrize("name", PRELUDES)
def test_a_prelude_is_a_choice_of_a_blueprints_names(name: str) -> None:
    prelude = import_module(f"accel_lab.prelude.{name}")
    blueprint = import_module(f"accel_lab.blueprints.{name}")
    for promised in prelude.__all__:
        assert getattr(prelude, promised) is getattr(blueprint, promised)


def test_every_blueprint_has_a_prelude() -> None:
    packages = {path.parent.name for path in (PACKAGE / "blueprints").glob("*/__init__.py")}
    assert packages == set(PRELUDES)


def test_preludes_import_nothing_heavy_and_open_nothing(tmp_path: Path) -> None:
    lines = ["import sys", "from accel_lab import open_systems", "from accel_lab.prelude import *"]
    lines += [f"from accel_lab.prelude.{name} import *" for name in PRELUDES]
    lines += ["assert not open_systems.running()"]
    lines += ["print(*{name.partition('.')[0] for name in sys.modules})"]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & HEAVY == set()
