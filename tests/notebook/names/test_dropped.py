"""Objects that a suspension has given up: their handles say so."""

import pytest

from accel_lab.errors import StaleRef
from tests.notebook.cells import Notebook

WHY = r"was dropped when cpu0 was suspended \(.*generator.*\); run its cell again"


def test_a_handle_says_that_its_object_was_dropped(notebook: Notebook) -> None:
    notebook("rest = (i for i in range(3))\nkept = [1, 2]\ndef draw():\n    return next(rest)")
    notebook("next_of = rest.__next__")
    (told,) = notebook.lab.suspend(drop=True)
    assert {name for name, _ in told.lost} == {"rest", "next_of"}
    rest, kept = notebook.names["rest"], notebook.names["kept"]
    for _ in range(2):
        assert "dropped when its device was suspended" in repr(rest)
        assert "dropped" not in repr(kept)
        for ask in (rest.get, lambda: list(rest), lambda: bool(rest), notebook.names["next_of"]):
            with pytest.raises(StaleRef, match="was dropped when cpu0 was suspended"):
                ask()
        with pytest.raises(StaleRef, match=f"'rest', a generator, {WHY}"):
            notebook("next(rest)")
        with pytest.raises(StaleRef, match=f"'rest', a generator, {WHY}"):
            notebook("draw()")
        notebook.lab.resume()
    notebook("rest = (i for i in range(5, 9))")
    assert "dropped" not in repr(notebook.names["rest"])
    assert notebook("next(rest), draw(), kept") == "(5, 6, [1, 2])"
