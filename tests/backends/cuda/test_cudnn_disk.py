"""cuDNN's plans on disk: for one card and version, and a frontend that refuses; no CUDA needed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel_lab.backends.cuda.handles.cudnn_disk import PLAN, PlansOnDisk, numbered

KEY = ("forward", "float16", (2, 3), 0.5)
STREAM = 7


class NotSupportedError(Exception):
    """What the frontend raises of a graph that cuDNN has not."""


class Graph:
    """A graph of the frontend, which is its plan."""

    def __init__(self, frontend: "Frontend", plan: bytes = b"") -> None:
        self.frontend, self.plan = frontend, plan

    def serialize(self) -> list[int]:
        if not self.plan:
            raise NotSupportedError
        return [*self.plan]

    def deserialize(self, handle: int, plan: list[int]) -> None:
        assert self.frontend.streams[handle] == 0, "it would capture the stream that is at work"
        assert type(plan) is list, "the frontend takes no bytes"
        if not bytes(plan).startswith(b"plan"):
            raise RuntimeError("parse_error")
        self.plan = bytes(plan)


class Frontend:
    """cuDNN's frontend, as far as plans on disk ask it."""

    cudnnGraphNotSupportedError = NotSupportedError  # noqa: N815 - the frontend's own name

    def __init__(self, version: str = "1.22.1", backend: int = 91900) -> None:
        self.__version__ = version
        self.backend_version = lambda: backend
        self.streams = {1: STREAM}

    def get_stream(self, handle: int) -> int:
        return self.streams[handle]

    def set_stream(self, handle: int, stream: int) -> None:
        self.streams[handle] = stream

    def pygraph(self, handle: int) -> Graph:
        assert handle in self.streams
        return Graph(self)


def opened(folder: Path, of: object = "H100", **frontend: Any) -> PlansOnDisk:
    return PlansOnDisk(Frontend(**frontend), folder / "cudnn", of, lambda _: False)


def kept(folder: Path, plan: bytes = b"plan 1") -> PlansOnDisk:
    disk = opened(folder)
    disk.keep(KEY, Graph(Frontend(), plan))
    return disk


def test_another_process_loads_a_plan_and_leaves_the_stream(tmp_path: Path) -> None:
    assert kept(tmp_path).statistics() == {"plans from disk": 0, "plans not kept": 0}
    frontend = Frontend()
    disk = PlansOnDisk(frontend, tmp_path / "cudnn", "H100", lambda _: False)
    assert disk.load(1, KEY).plan == b"plan 1"
    assert disk.load(1, (*KEY, 1)) is None
    assert frontend.streams == {1: STREAM}
    assert disk.statistics() == {"plans from disk": 1, "plans not kept": 0}


@pytest.mark.parametrize(
    "told", [{"of": "H200"}, {"backend": 91800}, {"version": "1.23.0"}], ids=str
)
def test_plans_of_another_card_or_version_are_others(tmp_path: Path, told: Any) -> None:
    kept(tmp_path)
    assert opened(tmp_path, **told).load(1, KEY) is None
    assert opened(tmp_path).load(1, KEY) is not None


def test_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    kept(tmp_path)
    (file,) = (tmp_path / "cudnn").glob(f"*/{PLAN}")
    file.write_bytes(b"plan 2")
    disk = opened(tmp_path)
    assert disk.load(1, KEY) is None
    disk.keep(KEY, Graph(Frontend(), b"plan 3"))
    assert disk.load(1, KEY).plan == b"plan 3"


def test_what_others_could_have_written_is_not_read(tmp_path: Path) -> None:
    kept(tmp_path)
    (tmp_path / "cudnn").chmod(0o777)
    assert opened(tmp_path).load(1, KEY) is None


def test_what_the_frontend_refuses_is_counted_and_made_anew(tmp_path: Path) -> None:
    kept(tmp_path, b"of another kind")
    frontend = Frontend()
    disk = PlansOnDisk(frontend, tmp_path / "cudnn", "H100", lambda _: False)
    assert disk.load(1, KEY) is None
    assert frontend.streams == {1: STREAM}
    assert disk.refusal == f"{KEY}: parse_error"
    disk.keep(KEY, Graph(frontend))  # nor can this one be serialized
    assert disk.statistics() == {"plans from disk": 0, "plans not kept": 2}
    disk.keep(KEY, Graph(frontend, b"plan 4"))
    assert disk.load(1, KEY).plan == b"plan 4"


def test_while_a_stream_is_captured_nothing_is_loaded(tmp_path: Path) -> None:
    kept(tmp_path)
    captured = [STREAM]
    disk = PlansOnDisk(Frontend(), tmp_path / "cudnn", "H100", lambda at: at in captured)
    assert disk.load(1, KEY) is None
    captured.clear()
    assert disk.load(1, KEY) is not None


def test_without_a_disk_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "cudnn").write_text("")
    disk = kept(tmp_path)
    assert disk.load(1, KEY) is None
    assert disk.statistics() == {"plans from disk": 0, "plans not kept": 0}


def test_tensors_are_numbered_in_their_order() -> None:
    numbers: list[int] = []
    numbered([SimpleNamespace(set_uid=numbers.append) for _ in range(3)])
    assert numbers == [1, 2, 3]
