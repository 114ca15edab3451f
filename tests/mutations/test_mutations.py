"""Break the supervisor, the check of generations and the journal's commit: the suite must notice.

Each mutation is a patch of one place in a copy of the project; the tests named with it must go
red on the copy. The same tests pass as long as nothing is broken, which the suite itself shows.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_S = 240.0
LEFT_OUT = shutil.ignore_patterns(".*", "*.pyc.*", "docs", "node_modules")


class Mutation(NamedTuple):
    """One way to break the package, and the tests that should notice."""

    name: str
    path: str
    before: str
    after: str
    tests: str
    chosen: str = ""


MUTATIONS = (
    Mutation(
        "a loss leaves the generation as it is",
        "compute/requests/connection.py",
        "self.generation += 1",
        "self.generation += 0",
        "faults/losses/test_losses.py",
        "says_why_and_comes_back",
    ),
    Mutation(
        "the call takes buffers of any generation",
        "compute/requests/handles.py",
        "if ref.generation != generation or ref._state == FAILED:",
        "if ref._state == FAILED:",
        "faults/losses/test_losses.py",
        "says_why_and_comes_back",
    ),
    Mutation(
        "a buffer whose upload failed may be read",
        "compute/execution/buffer_table.py",
        "        self.forget(buffer.id)\n        self._release(buffer)\n",
        "        self.forget(buffer.id)\n",
        "faults/requests/test_uploads.py",
    ),
    Mutation(
        "what a failed message should have written may be read",
        "compute/execution/buffer_table.py",
        "if refusals:",
        "if refusals and buffer.storage is None:",
        "faults/unwritten/test_unwritten.py",
    ),
    Mutation(
        "who is told of one failed write is told of all",
        "compute/execution/buffer_table.py",
        "if one.failed not in failed",
        "if not failed",
        "faults/unwritten/test_twice.py",
        "in_flight",
    ),
    Mutation(
        "nobody tells the supervisor of a loss",
        "compute/supervision/device_actor.py",
        "child.tell(Lost(error, number, counts))",
        "assert child",
        "faults/losses/test_losses.py",
        "run_in_order",
    ),
    Mutation(
        "restarts are not counted",
        "actor/supervision.py",
        "if self.count >= self.max_restarts:",
        "if self.count < 0:",
        "faults/losses/test_losses.py",
        "circuit_opens",
    ),
    Mutation(
        "what was in flight is not answered",
        "compute/requests/answers.py",
        "reply.reject((special or {}).get(seq, error))",
        "(special or {}).get(seq, error)",
        "faults/losses/test_losses.py",
        "behind_a_fault",
    ),
    Mutation(
        "the memory of a lost context is reused before it is reaped",
        "compute/arena/ledger.py",
        "live.after not in self._reaped:",
        "live.after not in self._reaped and live.holds:",
        "compute/arena/test_arena_model.py",
    ),
    Mutation(
        "the journal's transaction is taken back",
        "journal/stores/sqlite.py",
        'yield db\n                db.execute("COMMIT")',
        'yield db\n                db.execute("ROLLBACK")',
        "journal/stores/test_stores.py",
        "not redis and not postgres",
    ),
    Mutation(
        "a damaged group of the journal is believed",
        "journal/stores/chain.py",
        "if group.checksum != checksum:",
        "if group.checksum is checksum is None:",
        "journal/stores/test_damage.py",
    ),
    Mutation(
        "what a store has refused is forgotten",
        "journal/writing/writer.py",
        "                self._refused(error)\n",
        "                self._refused(error)\n                self._taken.clear()\n",
        "journal/test_writer.py",
    ),
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy what the tests need."""
    for folder in ("accel_lab", "tests", "widgets", "notebooks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=LEFT_OUT)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_patch_applies(mutation: Mutation) -> None:
    assert (ROOT / "accel_lab" / mutation.path).read_text().count(mutation.before) == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_suite_notices(copy: Path, mutation: Mutation) -> None:
    path = copy / "accel_lab" / mutation.path
    text = path.read_text()
    assert text.count(mutation.before) == 1, f"the patch of {mutation.path} does not apply"
    path.write_text(text.replace(mutation.before, mutation.after))
    command = [
        sys.executable,
        "-m",
        "pytest",
        f"tests/{mutation.tests}",
        "-x",
        "-q",
        "--timeout=60",
    ]
    if mutation.chosen:
        command += ["-k", mutation.chosen]
    environment = dict(os.environ, PYTHONPATH=str(copy), OPENBLAS_NUM_THREADS="1")
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"{mutation.tests} neither passed nor failed in {LIMIT_S:g} s")
    said = done.stdout[-3000:] + done.stderr[-1000:]
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, said
    assert " failed" in said or " error" in said, said
