"""Messages with several results, by libraries that are added to a copy of the project."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.libraries.copied_project import (
    copy_contract,
    copy_project,
    places,
    run_pytest,
    run_scenarios,
)

pytestmark = pytest.mark.timeout(150)  # long: it begins before files of short tests

HERE = Path(__file__).parent
DERIVED = (
    "tests/contract/test_declared.py",
    "tests/contract/test_declared_operands.py",
    "-k",
    "spectral.SVD",
)


def test_its_scenarios_pass(tmp_path: Path) -> None:
    run_scenarios(HERE / "trial", "trial", tmp_path)


@pytest.fixture(scope="module")
def spectral(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("project")
    copy_project(HERE / "spectral", "spectral", copy)
    copy_contract(copy)
    return copy


@contextmanager
def edited(copy: Path, name: str, old: str, new: str) -> Iterator[None]:
    """Change one line of the library for a while."""
    path = copy / places("spectral")[name]
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    try:
        yield
    finally:
        path.write_text(text)


def test_a_library_with_three_results_and_a_status_is_small() -> None:
    texts = [(HERE / "spectral" / name).read_text() for name in places("spectral")]
    assert len(texts) == 3
    assert sum(len(list(filter(str.strip, text.splitlines()))) for text in texts) < 60


def test_what_they_declare_is_tested(spectral: Path) -> None:
    done = run_pytest(spectral, *DERIVED)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("host.py", "u, s, vt, info =", "vt, s, u, info ="),
        ("host.py", "out.u[...], out.s[...] = u, s", "out.u[...], out.s[...] = s, u"),
        ("library.py", "->(m,k),(k),(k,n);", "->(m,k),(k,n),(k);"),
        ("library.py", "u: AccelRef\n    s: AccelRef\n", "s: AccelRef\n    u: AccelRef\n"),
    ],
    ids=["vectors", "left and values", "declared shapes", "names"],
)
def test_two_results_in_each_others_place_are_seen(
    spectral: Path, name: str, old: str, new: str
) -> None:
    with edited(spectral, name, old, new):
        done = run_pytest(spectral, *DERIVED, "--maxfail=1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout
