"""Every place that names a dependency says the same as `pyproject.toml`."""

from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from accel_lab.doctor.packages import CORE, JUPYTER, Package, cuda
from tests.project import PROJECT, ROOT, bounds, requirements


def conda() -> tuple[list[str], list[str]]:
    """Read what conda installs, and what pip installs after it."""
    content: dict[str, Any] = yaml.safe_load((ROOT / "environment.yml").read_text())
    lines = content["dependencies"]
    (pip,) = [line["pip"] for line in lines if isinstance(line, dict)]
    return [line for line in lines if isinstance(line, str)], pip


def test_conda_environment_has_the_same_bounds() -> None:
    packages, pip = conda()
    named = [line for line in packages if not line.startswith(("python>", "pip"))]
    expected = requirements() | requirements("lab") | requirements("test")
    assert bounds([*named, *(line for line in pip if line != "-e .")]) == expected


def test_conda_environment_installs_accel_lab_into_the_same_python() -> None:
    packages, pip = conda()
    assert f"python{PROJECT['requires-python']}" in packages
    assert "pip" in packages
    assert pip[-1] == "-e ."


@pytest.mark.parametrize(
    ("extra", "packages"),
    [("", CORE), ("lab", JUPYTER), ("cuda12", cuda(12)), ("cuda13", cuda(13))],
)
def test_doctor_looks_for_what_is_declared(extra: str, packages: tuple[Package, ...]) -> None:
    # cuda-python is a name for its parts; its major part is cuda-bindings, of the same version.
    declared = {
        name.replace("cuda-python", "cuda-bindings"): SpecifierSet(specifier)
        for name, specifier in requirements(extra).items()
    }
    known = {canonicalize_name(one.distribution): one for one in packages if one.at_least}
    assert known.keys() == declared.keys()
    for name, package in known.items():
        assert f">={package.at_least}" in map(str, declared[name]), name
