"""What is told of models that packages ship is measured by a command that can be repeated."""

import json
import sysconfig
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from accel_lab import System
from accel_lab.blueprints.patterns import InferenceCascade, Step
from tests.benchmarks.models import STATE, Bytes, Heard, Magika, Silero, known_files, sounds
from tests.benchmarks.real_models import SIZES, THRESHOLDS, main
from tests.contract.onnx_models import onnxruntime
from tests.contract.test_onnx_packages import path_of

DRAWN = {
    "png": b"\x89PNG\r\n\x1a\n" + bytes(range(200)),
    "python": b"import os\nprint(os.name)\n" * 9,
}


@pytest.fixture
def need() -> Callable[[str, str], str]:
    """Skip without what a package ships, onnx and onnxruntime."""
    return path_of


def test_counts_of_bytes_tell_kinds_apart() -> None:
    texts, kinds = [*DRAWN.values()] * 4, [*DRAWN] * 4
    found = Bytes(texts, kinds)([text[: len(text) // 2] for text in DRAWN.values()])
    assert [kind for kind, _ in found] == [*DRAWN]
    assert all(0.5 < confidence <= 1 for _, confidence in found)


def test_files_are_drawn_alike_and_no_text_twice(tmp_path: Path) -> None:
    for n in range(5):
        (tmp_path / f"{n}.py").write_text(f"# {n // 2}" + "x" * 99)
        (tmp_path / f"{n}.css").write_text(f"/* {n} */" + "y" * 99)
    (tmp_path / "short.py").write_text("pass")
    (tmp_path / "folder.py").mkdir()
    texts, kinds = known_files(tmp_path, 4)
    assert sorted(kinds) == ["css"] * 4 + ["python"] * 3
    assert len(set(texts)) == 7
    assert (texts, kinds) == known_files(tmp_path, 4)


@pytest.mark.slow
def test_batches_of_silero_vad_give_three_times_the_rate_and_the_cascade_is_drawn(
    need: Callable[[str, str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need("silero-vad", "silero_vad_16k_op15.onnx")
    need("magika", "model.onnx")
    pytest.importorskip("matplotlib")
    kept, drawn = tmp_path / "rows.json", tmp_path / "cascade.svg"
    given = ["--requests", "128", "--rounds", "3", "--files", "8"]
    assert main([*given, "--json", str(kept), "--plot", str(drawn)]) == 0
    rows = json.loads(kept.read_text())
    assert [row["batches of"] for row in rows[:3]] == list(SIZES)
    assert all(row["times one at a time"] >= 3 for row in rows[1:3]), rows[:3]
    judged = rows[3:]
    assert [row["threshold"] for row in judged] == list(THRESHOLDS)
    assert [row["cost"] for row in judged] == sorted(row["cost"] for row in judged)
    assert (judged[0]["sent on"], judged[-1]["sent on"]) == (0, 1)
    assert "right kinds" in drawn.read_text()
    assert len(capsys.readouterr().out.splitlines()) == len(rows)


@pytest.mark.slow
def test_a_batch_of_silero_vad_gives_what_onnxruntime_gives(
    need: Callable[[str, str], str],
) -> None:
    path = need("silero-vad", "silero_vad_16k_op15.onnx")
    windows = sounds(5)
    with System("host", 1) as lab:
        model = Silero(lab.devices[0])
        first = model(windows)
        again = [Heard(one.sound, state) for one, (_, state) in zip(windows, first, strict=True)]
        second = model(again)
    state = np.zeros((2, 5, STATE), np.float32)
    sound = np.stack([one.sound for one in windows])
    for found in (first, second):
        wanted, state = onnxruntime(path, input=sound, state=state, sr=np.array(16_000))
        np.testing.assert_allclose([speech for speech, _ in found], wanted[:, 0], atol=1e-5)
        np.testing.assert_allclose(np.stack([one for _, one in found], axis=1), state, atol=1e-4)


@pytest.mark.slow
def test_a_cascade_ends_with_what_magika_itself_says(need: Callable[[str, str], str]) -> None:
    need("magika", "model.onnx")
    import magika

    texts, kinds = known_files(Path(sysconfig.get_path("purelib")), 3)
    with System("host", 1) as lab:
        steps = [Step(Bytes(texts, kinds), threshold=1.0), Step(Magika(lab.devices[0]))]
        with InferenceCascade(lab, steps, max_batch=8) as server:
            judged = [reply.result() for reply in [server.ask(one) for one in texts]]
    package = magika.Magika()
    for one, text in zip(judged, texts, strict=True):
        said = package.identify_bytes(text).prediction
        assert (one.value, one.stage) == (str(said.dl.label), 1)
        assert one.confidence == pytest.approx(said.score, abs=1e-3)
