"""What names any number of buffers fits into frames, whatever the number."""

from itertools import chain
from typing import Any, cast

import msgspec
import pytest

from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.lineage.aliasing import Aliasing
from accel_lab.compute.lineage.content_store import Contents
from accel_lab.compute.lineage.recorded_message import releasing, withholding_with
from accel_lab.compute.message.parts import in_parts
from accel_lab.compute.message.unwritten import Refusal
from accel_lab.compute.recovery.resending import Resending
from accel_lab.compute.user_code.call import answer_parts
from accel_lab.compute.wire.codec import FRAME_LIMIT, Answer, encode_entry, encode_reports

MANY = 500_000
BASE = 1 << 40  # as long as an id may be


class Sent:
    """Takes what is resent."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.connection = self

    def resend(self, _: Any, __: int, data: bytes) -> None:
        self.entries.append(data)


@pytest.mark.parametrize("count", [0, 1, 4096, 4097, 10_000])
def test_parts_are_all_of_it_in_order(count: int) -> None:
    assert list(chain.from_iterable(in_parts(range(count)))) == list(range(count))


def test_half_a_million_buffers_are_freed_frame_by_frame() -> None:
    sent, ids = Sent(), range(BASE, BASE + MANY)
    resending = Resending(cast("Any", sent), cast("Arena", None), cast("Contents", None), str)
    resending.free(cast("Any", None), ids)
    assert max(map(len, sent.entries)) < FRAME_LIMIT
    named = [msgspec.msgpack.decode(data)[3][1] for data in sent.entries]
    assert list(chain.from_iterable(named)) == list(ids)


def test_what_shares_refused_memory_is_named_beside_it_frame_by_frame() -> None:
    one, sharing = Refusal(7, -3, 5), range(BASE, BASE + MANY)
    messages = withholding_with(one, sharing)
    assert all(len(encode_entry(0, 0, None, m)) < FRAME_LIMIT for m in messages)
    assert all(buffers[0] == 7 for _, buffers, *_ in messages)
    assert [id_ for _, (_, *some), *_ in messages for id_ in some] == list(sharing)
    assert len(withholding_with(one, ())) == 1


def test_what_is_refused_no_more_is_named_frame_by_frame() -> None:
    refusals = [Refusal(BASE + i, -BASE, i) for i in range(MANY)]
    messages = releasing(refusals)
    assert all(len(encode_entry(0, 0, None, m)) < FRAME_LIMIT for m in messages)
    assert [id_ for _, ids, _ in messages for id_ in ids] == [one.id for one in refusals]
    assert releasing([]) == []


@pytest.mark.parametrize("axes", [1, 32])
def test_an_answer_names_its_arrays_frame_by_frame(axes: int) -> None:
    arrays = [(BASE + i, (3,) * axes, "complex128", BASE) for i in range(50_000)]
    data = bytes(2 * FRAME_LIMIT)
    parts = answer_parts(7, data, arrays)
    assert all(len(encode_reports([part])) < FRAME_LIMIT for part in parts)
    answers = [part for part in parts if isinstance(part, Answer)]
    assert b"".join(one.part for one in answers) == data
    assert list(chain.from_iterable(one.arrays for one in answers)) == arrays
    assert [one.last for one in answers] == [False] * (len(answers) - 1) + [True]


def test_who_shares_memory_is_found_in_one_look_at_each() -> None:
    aliasing, live = Aliasing(), set(range(1, 40))
    for id_ in live:
        aliasing.enter(id_, () if id_ % 4 else (1,) if id_ % 8 else (2, 3), live)
    there = {id_ for id_ in live if id_ % 3}
    ids = sorted(live - there)
    found = aliasing.sharing_each(ids, there)
    assert found == {id_: aliasing.sharing(id_, there) for id_ in ids}
