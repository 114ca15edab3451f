"""Imports go down, between floors and between the rooms of one: enforced on the source text."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest

from tests.project import PACKAGE, ROOT

FLOORS = (
    {"errors", "display", "host_waits", "library_modules", "uncopied"},
    {"actor"},
    {"compute"},
    {"libraries"},
    {"backends"},
    {"journal"},
    {"world"},
    {"system", "open_systems", "context_process", "default", "far_side"},
    {"array_api", "pipeline", "raw"},
    {"onnx"},
    {"blueprints"},
    {"testing", "views"},
    {"telemetry"},
    {"prelude"},
    {
        "bench",
        "cli",
        "demo",
        "doctor",
        "explain_process",
        "extension",
        "gpu_test",
        "jupyter",
        "notebook",
        "top",
        "session",
        "tutorials",
    },
)
EVERY_OTHER = "…"
"""Stands for rooms with names of their own: a library more needs no place of its own."""

ROOMS: dict[str, tuple[set[str], ...]] = {
    "compute": (
        {"machine"},
        {"shared"},
        {"events"},
        {"arrays"},
        {"message"},
        {"streams"},
        {"groups"},
        {"arena"},
        {"files"},
        {"execution"},
        {"fallback", "tracing"},
        {"wire"},
        {"output"},
        {"fusion"},
        {"dispatcher"},
        {"cells"},
        {"process"},
        {"lineage"},
        {"residency"},
        {"user_code"},
        {"actors"},
        {"requests"},
        {"world"},
        {"recovery"},
        {"transfer"},
        {"suspension"},
        {"supervision"},
        {"graph"},
        {"device"},
        {"peers", "placement"},
        {"assembly", "cluster"},
    ),
    "blueprints": ({EVERY_OTHER}, {"agents", "serving"}),
    "libraries": (
        {"authoring"},
        {EVERY_OTHER},
        {"array", "memory", "module"},
        {"attention", "cutlass", "fft", "tensorrt"},
    ),
    "backends/cuda": (
        {"activity", "completion", "support"},
        {"device"},
        {"handles", "own_kernels"},
        {"array"},
        {EVERY_OTHER},
        {"dnn", "graph"},
        {"attention", "checkpoint", "cutlass", "memory", "module"},
        {"baseline", "loading"},
    ),
    "backends/wgpu": (
        {"adapters", "support"},
        {"kernels"},
        {"device"},
        {"array"},
        {EVERY_OTHER},
    ),
    "blueprints/language": (
        {"gguf", "tokenizer"},
        {"weights"},
        {"model", "package"},
        {"texts"},
        {"session"},
    ),
    "blueprints/serving": (
        {"errors", "model", "text"},
        {"protocol", "steps", "tenants"},
        {"replicas"},
        {"generations"},
        {"deployment"},
        {"http"},
        {"server"},
    ),
    "blueprints/realtime": (
        {"checkpoints", "checks", "kernels"},
        {"cell_grid", "simulation"},
        {EVERY_OTHER},
        {"video"},
    ),
    "blueprints/patterns": ({"base"}, {"batching"}, {EVERY_OTHER}),
    "blueprints/agents": (
        {"chunking", "embedding_cache", "errors"},
        {"graph", "vector_index"},
        {"graph_agent", "rag_pipeline", "shared_state"},
    ),
    "journal": (
        {"stores"},
        {"entries"},
        {"events"},
        {"writing"},
        {"replay"},
        {"journal"},
        {"explanation"},
    ),
    "blueprints/train": (
        {"autograd", "faults"},
        {"batches", "losses", "optimizers", "snapshots", "telling"},
        {"checks", "exchange"},
        {"models", "parameter_server", "trainers"},
    ),
    "session": (
        {"store"},
        {"plain"},
        {"buffers"},
        {"decoder", "notebook", "reopened"},
        {"cells_again", "fork", "moment"},
        {"session"},
        {"opening"},
        {"reopening"},
    ),
    "views": (
        {"scene"},
        {"tallies"},
        {"widget"},
        {"past"},
        {"feed"},
        {"axis"},
        {"chrome_trace", "lab_lines"},
        {
            "canvas",
            "cells",
            "collectives",
            "health",
            "journal_view",
            "patterns",
            "sidebar",
            "supervision",
            "timeline",
            "topology",
            "training",
            "tree",
            "values",
            "vram",
        },
        {"agents", "kernels"},
        {"faults", "lab"},
        {"first_minute"},
        {"dashboard", "panels"},
    ),
    "bench": (
        {"calls", "case", "effort", "operands", "page", "peers", "rounds", "row", "workloads"},
        {"cases", "own_loop", "peer"},
        {"rows"},
        {"chart", "machine"},
        {"report"},
        {"suite"},
    ),
    "top": ({"snapshot"}, {"looker", "stack"}, {"terminal"}),
    "gpu_test": ({"outcome"}, {"messages", "report"}, {"together"}, {"suite"}),
}
"""The rooms of a floor, the lowest first; those in one pair of braces do not import each other."""

A_HANDLE_SAYS_ITS_DEVICE = {
    ("compute/message/buffer.py", "accel_lab.compute.device.Device"),
    ("compute/message/operators.py", "accel_lab.compute.device.Device"),
}
"""What annotates, for a type checker alone, the device that a user gets from a handle."""

MOST_FILES = 15
"""How many files a folder has at most, so that one look at it is enough."""
PROCESS = re.compile(r"\bRuns in (?:the notebook's process|a context's process|both)\b")
TOOLS = {"bench", "doctor", "far_side", "gpu_test", "top"}
"""Floors that are programs of their own, in a process of theirs."""

CUDA_PACKAGES = {"cuda", "cudnn", "cupti", "cupy", "cupyx", "nccl", "nvmath"}
OPENS_BACKENDS = {"system", "context_process", "far_side"}
NAMES_BACKENDS = {
    "bench",
    "doctor",
    "explain_process",
    "gpu_test",
}  # for what a context imports, or a table
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def module_of(path: Path) -> list[str]:
    """Name a file's module below accel_lab, as ["actor", "reply"]."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return [part for part in parts if part != "__init__"]


def imports(path: Path, text: str | None = None) -> Iterator[str]:
    """Give every module that a file imports, wherever in the file, and those it names to import.

    Parameters:
        text: what is in the file, if that is not to be read.
    """
    package = ["accel_lab", *module_of(path)][: -1 if path.name != "__init__.py" else None]
    for node in ast.walk(ast.parse(path.read_text() if text is None else text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and str(node.value).startswith("accel_lab.backends"):
            yield str(node.value)  # import_module("accel_lab.backends." + name) is an import too


@cache
def imported(path: Path) -> tuple[str, ...]:
    return tuple(imports(path))


def named(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def floor(name: str) -> int:
    for level, names in enumerate(FLOORS):
        if name in names:
            return level
    pytest.fail(f"accel_lab.{name} stands on no floor: add it to FLOORS")


def test_imports_go_down() -> None:
    climbing = [
        f"{named(path)} imports {name}"
        for path in FILES
        for name in imported(path)
        if name.startswith("accel_lab.") and floor(name.split(".")[1]) > floor(module_of(path)[0])
    ]
    assert climbing == []


def room(house: str, name: str) -> int:
    places = {one: level for level, names in enumerate(ROOMS[house]) for one in names}
    place = places.get(name, places.get(EVERY_OTHER))
    if place is None:
        pytest.fail(f"accel_lab/{house} has no place for {name}: add it to ROOMS")
    return place


def climbing(house: str, path: Path, text: str | None = None) -> Iterator[str]:
    """Give what a file imports of a room of its house that does not lie below its own."""
    here = module_of(path)[house.count("/") + 1 :]
    for name in imported(path) if text is None else imports(path, text):
        inside = name.removeprefix(f"accel_lab.{house.replace('/', '.')}.")
        other = inside.partition(".")[0]
        if inside == name or other in {"", here[0]}:
            continue
        if room(house, other) >= room(house, here[0]):
            yield name


@pytest.mark.parametrize("house", ROOMS)
def test_imports_go_down_from_room_to_room(house: str) -> None:
    """Also where only a type checker sees them, and inside functions."""
    folder = PACKAGE / house
    found = {
        (str(path.relative_to(PACKAGE)), name)
        for path in folder.rglob("*.py")
        if path != folder / "__init__.py"  # which hands on what all its rooms have
        for name in climbing(house, path)
    }
    assert found - A_HANDLE_SAYS_ITS_DEVICE == set()


def test_a_handles_device_is_imported_for_type_checkers_alone() -> None:
    for file, name in A_HANDLE_SAYS_ITS_DEVICE:
        module, _, what = name.rpartition(".")
        tree = ast.parse((PACKAGE / file).read_text())
        (guarded,) = [
            one
            for one in tree.body
            if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"
        ]
        statement = f"from {module} import {what}"
        assert [ast.unparse(one) for one in ast.walk(tree)].count(statement) == 1
        assert statement in [ast.unparse(one) for one in guarded.body]


def test_a_climbing_import_is_seen_wherever_it_stands() -> None:
    text = (
        "from typing import TYPE_CHECKING\n"
        "from accel_lab.actor import clock\n"
        "from accel_lab.compute.machine import ring\n"
        "from accel_lab.compute.wire import codec\n"
        "if TYPE_CHECKING:\n"
        "    from accel_lab.compute.device import Device\n"
        "def late() -> None:\n"
        "    from accel_lab.compute.recovery import recovery\n"
        "    import accel_lab.compute.supervision.sampler\n"
    )
    path = PACKAGE / "compute" / "wire" / "made_up.py"
    assert sorted(climbing("compute", path, text)) == [
        "accel_lab.compute.device.Device",
        "accel_lab.compute.recovery.recovery",
        "accel_lab.compute.supervision.sampler",
    ]


@pytest.mark.parametrize("top", ["accel_lab", "widgets", "tests"])
def test_a_folder_is_seen_at_one_look(top: str) -> None:
    """One for each library, and so one more with each: `tests/contract` alone may have more."""
    found = (path.relative_to(ROOT) for path in (ROOT / top).rglob("*") if path.is_file())
    written = [path for path in found if not any(part[0] in "._" for part in path.parts[:-1])]
    folders = Counter(str(path.parent) for path in written)
    del folders["tests/contract"]
    assert {name: count for name, count in folders.items() if count > MOST_FILES} == {}


def test_a_room_says_in_which_process_it_runs() -> None:
    silent = [
        named(path.parent)
        for path in FILES
        if path.name == "__init__.py" and module_of(path)[0] not in TOOLS
        if not PROCESS.search(
            " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
        )
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("entries", "never"),
    [
        (["context_process", "backends.host.device"], "supervision"),
        (["system", "views", "extension", "notebook.gpu_cell"], "dispatcher"),
    ],
    ids=["context", "notebook"],
)
def test_a_process_loads_nothing_of_the_others_loop(entries: list[str], never: str) -> None:
    names = ", ".join(f"accel_lab.{entry}" for entry in entries)
    code = f"import {names}, sys; print(*(n for n in sys.modules if n.startswith('accel_lab.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert f"accel_lab.{entries[0]}" in loaded
    assert [name for name in loaded if name.startswith(f"accel_lab.compute.{never}")] == []


def importing(packages: set[str], *without: str) -> list[str]:
    """Return the files that import one of some packages, but for those of a folder."""
    return [
        named(path)
        for path in FILES
        if module_of(path)[: len(without)] != [*without]
        and not packages.isdisjoint(name.partition(".")[0] for name in imported(path))
    ]


def test_only_the_cuda_backend_imports_cuda() -> None:
    assert importing(CUDA_PACKAGES, "backends", "cuda") == []


def test_only_the_wgpu_backend_imports_wgpu() -> None:
    assert importing({"wgpu"}, "backends", "wgpu") == []


def test_only_a_system_and_a_context_open_a_backend() -> None:
    opening = [
        f"{named(path)} imports {name}"
        for path in FILES
        if module_of(path)[0] not in OPENS_BACKENDS | NAMES_BACKENDS | {"backends"}
        for name in imported(path)
        if name.startswith("accel_lab.backends")
    ]
    assert opening == []


@pytest.mark.parametrize(("backend", "other"), [*permutations(["host", "cuda", "wgpu"], 2)])
def test_backends_do_not_know_each_other(backend: str, other: str) -> None:
    for path in (PACKAGE / "backends" / backend).rglob("*.py"):
        for name in imported(path):
            assert not name.startswith(f"accel_lab.backends.{other}"), path
