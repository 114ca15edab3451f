"""Imports go down: the plan of the house, enforced on the source text."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import PACKAGE

FLOORS = (
    {"errors", "display"},
    {"actor"},
    {"compute"},
    {"libraries"},
    {"backends"},
    {"journal"},
    {"system", "open_systems", "context_process", "default"},
    {"views"},
    {
        "bench",
        "cli",
        "demo",
        "doctor",
        "explain_process",
        "extension",
        "jupyter",
        "notebook",
        "tutorials",
    },
)
CUDA_PACKAGES = {"cuda", "cudnn", "cupy", "cupyx", "nccl", "nvmath"}
OPENS_BACKENDS = {"system", "context_process"}
NAMES_BACKENDS = {"bench", "explain_process"}  # a module that only the context imports
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def module_of(path: Path) -> list[str]:
    """Name a file's module below accel_lab, as ["actor", "reply"]."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return [part for part in parts if part != "__init__"]


def imports(path: Path) -> Iterator[str]:
    """Give every module that a file imports, wherever in the file, and those it names to import."""
    package = ["accel_lab", *module_of(path)][: -1 if path.name != "__init__.py" else None]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and str(node.value).startswith("accel_lab.backends"):
            yield str(node.value)  # import_module("accel_lab.backends." + name) is an import too


def floor(name: str) -> int:
    for level, names in enumerate(FLOORS):
        if name in names:
            return level
    pytest.fail(f"accel_lab.{name} stands on no floor: add it to FLOORS")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    here = module_of(path)
    for name in imports(path):
        root, _, rest = name.partition(".")
        if root == "accel_lab" and rest:
            other = rest.split(".")[0]
            assert floor(other) <= floor(here[0]), f"{'.'.join(here)} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_cuda_backend_imports_cuda(path: Path) -> None:
    if module_of(path)[:2] != ["backends", "cuda"]:
        assert CUDA_PACKAGES.isdisjoint(name.partition(".")[0] for name in imports(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_a_system_and_a_context_open_a_backend(path: Path) -> None:
    here = module_of(path)[0]
    if here not in OPENS_BACKENDS | NAMES_BACKENDS | {"backends"}:
        assert not [name for name in imports(path) if name.startswith("accel_lab.backends")]


@pytest.mark.parametrize("backend", ["host", "cuda"])
def test_backends_do_not_know_each_other(backend: str) -> None:
    other = {"host": "cuda", "cuda": "host"}[backend]
    for path in (PACKAGE / "backends" / backend).rglob("*.py"):
        for name in imports(path):
            assert not name.startswith(f"accel_lab.backends.{other}"), path
