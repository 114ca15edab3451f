"""JSON lines that somebody made by hand are a JournalError, or a journal, and nothing else."""

import contextlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accel_lab import System, array, blas
from accel_lab.compute.actors.fault import Inject
from accel_lab.errors import AccelError, JournalDamaged, JournalError
from accel_lab.journal.journal import Journal
from accel_lab.journal.replay.replay import replay
from tests.journal.journaled import journaled

DEEP = 900
"""How deep lists stand in each other that JSON's decoder takes."""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A journal of a little of everything."""
    path = tmp_path_factory.mktemp("crafted") / "x.jsonl"
    with journaled() as (lab, journal):
        device = lab.devices[0]
        a = device.put(np.arange(12.0).reshape(3, 4))
        b = blas.gemm(a, device.put(np.random.default_rng(1).normal(size=(4, 3_000))))
        c = array.concatenate([b, blas.scal(b, 2.0)])
        device.checkpoint(c)
        with pytest.raises(AccelError):
            device.ask(Inject("library")).result()
        device.run(lambda x: x + np.nan, b, pure=True).result()
        array.unique(a, return_counts=True)[0].result()
        del a, b, c
        journal.to_jsonl(path)
    return path.read_text().splitlines()


@pytest.fixture(scope="module")
def lab() -> Iterator[System]:
    with System("host", journal=None) as lab:
        yield lab


def look(path: Path, lab: System) -> None:
    """Do with a journal what one does; a JournalError may come from anywhere."""
    with contextlib.suppress(JournalError):
        journal = Journal.from_jsonl(path)
        for read in (list, len, repr, Journal._repr_html_, lambda j: j.filter(failed=True)):
            with contextlib.suppress(JournalError):
                read(journal)
        for entry in journal[:]:
            repr((entry, entry.outcome, entry.makes, entry.operands, entry.place, entry.why))
            repr((entry.title, entry.content, entry.digest, entry.failure))
        with contextlib.suppress(JournalError):
            journal.to_jsonl(path.with_name("again.jsonl"))
        with contextlib.suppress(JournalError):
            str(replay(journal, lab, allow_code=True, progress=False))


def places(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of everything in a JSON value."""
    yield where
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(one, (*where, key))


def changed(value: Any, where: tuple[Any, ...], new: Any) -> Any:
    """Return a value with another in one of its places."""
    if not where:
        return new
    copy = value.copy()
    copy[where[0]] = changed(value[where[0]], where[1:], new)
    return copy


NAN, INFINITE = (struct.pack(">d", float(text)).hex() for text in ("nan", "inf"))
junk: st.SearchStrategy[Any] = st.sampled_from(
    (
        *(
            None,
            True,
            -1,
            0,
            3,
            1 << 63,
            1 << 70,
            -(1 << 63),
            1.5,
            1e300,
            -1e300,
            "",
            "x",
            "\ud800",
        ),
        *([], [[]], [None], [1, 2], {}, {"map": []}, {"map": [[[], 1]]}, {"map": [1]}),
        *({"base64": "AA=="}, {"base64": "\u00e9"}, {"base64": 3}),
        *({"float": "nan", "bits": bits} for bits in ("00", NAN, INFINITE)),
    )
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_value_that_was_changed_is_a_journal_error_or_none(
    data: st.DataObject, lines: list[str], lab: System, tmp_path: Path
) -> None:
    at = data.draw(st.integers(0, len(lines) - 1))
    line = json.loads(lines[at])
    where = data.draw(st.sampled_from(list(places(line))))
    if data.draw(st.integers(0, 9)) == 0 and where and isinstance(where[-1], str):
        line = changed(line, where[:-1], {})
    else:
        line = changed(line, where, data.draw(junk))
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join([*lines[:at], json.dumps(line), *lines[at + 1 :]]))
    look(path, lab)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('"seq": 1,', f'"seq": 1, "several": {"[" * DEEP}{"]" * DEEP},'),
        ('"at": ', '"at": 1e300, "was": '),
        ('"cell": null', '"cell": {"float": "nan"}'),
        ('"device": "cpu0"', '"device": "\\ud800"'),
        ('"float64"', '"float63"'),
    ],
)
def test_what_is_known_to_have_been_tried_is_damaged(
    was: str, now: str, lines: list[str], lab: System, tmp_path: Path
) -> None:
    path = tmp_path / "x.jsonl"
    text = "\n".join(lines)
    assert was in text
    path.write_text(text.replace(was, now, 1))
    look(path, lab)
    journal = Journal.from_jsonl(path)
    if "float63" not in now:  # which only a replay can tell
        assert isinstance(journal.damage, JournalDamaged)
