"""The scrubber over the cells of a session: real commits, each beside the newest."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel_lab
from accel_lab import Session, System, blas, views
from accel_lab.display.table import WIDTH
from accel_lab.errors import InvalidArgument
from accel_lab.views.cells import source
from accel_lab.views.widget import commands

WAIT_S = 30.0


class Written:
    """A session with some commits.

    Attributes:
        names: of which it is.
    """

    def __init__(self, folder: Path) -> None:
        self.names: dict[str, Any] = {}
        self.lab: Session = accel_lab.open(folder, "host", names=self.names)
        gpu = self.lab.devices[0]
        self.names |= {"w": gpu.put(np.arange(6.0).reshape(2, 3)), "n": 1, "old": [1]}
        self.names["kept"] = gpu.put(np.ones(3))
        self.lab.commit()
        row = self.names["w"][1]
        blas.scal(row, 2.0, out=row)
        self.names |= {"n": 2, "more": "text"}
        del self.names["old"]
        self.lab.commit()


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    made = Written(tmp_path / "run.lab")
    yield made
    made.lab.close()


def test_it_begins_with_the_newest_and_goes_back(written: Written) -> None:
    view = views.cells(written.lab)
    state = view.drawn()
    assert (state["position"], state["count"], state["rows"]) == (2, 2, [])
    assert set(state["same"]) == {"w", "n", "more", "kept"}
    commands.obey(view, do="seek", position=1)
    state = view.drawn()
    assert (state["position"], state["then"], state["now"]) == (1, "commit 1", "commit 2")
    w, n = state["rows"]
    assert (w["name"], w["how"]) == ("w", "3 of 6 elements: 3.0 -> 6.0, 4.0 -> 8.0, 5.0 -> 10.0")
    assert w["sketch"]["before"] == [0, 1, 2, 3, 4, 5]
    assert w["sketch"]["after"] == [0, 1, 2, 6, 8, 10]
    assert (n["before"], n["after"]) == ("1", "2")
    assert (state["new"], state["gone"], state["same"]) == (["more"], ["old"], ["kept"])
    assert state["first_name"] == "w"
    assert "Scal, message" in state["first"]
    assert json.loads(json.dumps(state)) == state
    np.testing.assert_array_equal(written.names["w"].get(), [[0, 1, 2], [6, 8, 10]])


def test_its_text_and_its_tables_say_the_same(written: Written) -> None:
    view = views.cells(written.lab)
    view.do_seek(1)
    drawn = view._repr_mimebundle_()[0]
    for words in ("after commit 1", "n: 1 -> 2", "first message: Scal", "gone since: old"):
        assert words in " ".join(drawn["text/plain"].split())
    assert all(len(line) <= WIDTH for line in drawn["text/plain"].splitlines())
    assert "After commit 1" in drawn["text/html"]
    assert drawn["text/html"].count("data:image/svg+xml") == 1
    told = written.lab.diff(written.lab.at(commit=1), written.lab.at(commit=2))
    assert told.first_name == "w"
    assert "data:image/svg+xml" in told._repr_html_()
    assert told.changes["w"].sketch is not None


def test_it_follows_what_is_committed_later(written: Written) -> None:
    view = views.cells(written.lab)
    assert view.drawn()["position"] == 2
    written.names["n"] = 3
    written.lab.commit()
    news: list[int] = []
    end = view.source.on_news(lambda: news.append(1))
    view.sample()  # as the publisher does, which must not block
    until = time.monotonic() + WAIT_S
    while not news and time.monotonic() < until:
        time.sleep(0.01)
    end()
    assert (view.sample()["position"], view.sample()["count"]) == (3, 3)
    view.do_seek(2)
    written.lab.commit()
    assert (view.drawn()["position"], view.drawn()["count"]) == (2, 4)  # it stays where it was put


def test_large_buffers_are_not_made_to_be_looked_at(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MOST_BYTES", 40)
    view = views.cells(written.lab)
    view.do_seek(1)
    (w,) = [row for row in view.sample()["rows"] if row["name"] == "w"]
    assert w["how"] == "other messages make it, of 48 B, and up to 40 B are compared here"
    assert w["before"] == "float64[2, 3]"
    assert "sketch" not in w


def test_a_commit_that_is_damaged_says_so(written: Written) -> None:
    written.lab._folder.commit_path(1).write_bytes(b"x")
    view = views.cells(written.lab)
    view.do_seek(1)
    assert "is damaged" in view.sample()["damage"]
    assert "is damaged" in " ".join(str(view).split())
    view.do_seek(2)
    assert "damage" not in view.sample()


def test_what_it_does_not_take_is_refused(written: Written, tmp_path: Path) -> None:
    with System("host", devices=1) as lab, pytest.raises(InvalidArgument, match="not at <System"):
        views.cells(lab)  # type: ignore[arg-type]
    view = views.cells(written.lab)
    for position in (0, 3, "1"):
        with pytest.raises(InvalidArgument, match="commits 1 to 2"):
            view.do_seek(position)  # type: ignore[arg-type]
    with accel_lab.open(tmp_path / "new.lab", "host", names={}) as empty:
        assert "nothing is committed yet" in " ".join(str(views.cells(empty)).split())
    written.lab.close()
    assert view.sample()["closed"]
    with pytest.raises(InvalidArgument, match="the session is closed"):
        view.do_seek(1)
