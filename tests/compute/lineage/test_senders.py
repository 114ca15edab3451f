"""Which cells have sent which requests, without a device."""

from collections.abc import Callable
from math import inf

import pytest

from accel_lab import System
from accel_lab.compute.lineage.senders import KEPT, Senders
from accel_lab.compute.output import cell_origin
from accel_lab.compute.output.cell_origin import Origin


def told() -> Senders:
    senders = Senders()
    for seq, cell in ((3, 1), (7, None), (9, 4)):
        senders.begin(seq, cell)
    return senders


def test_a_request_is_of_the_cell_that_began_last_before_it() -> None:
    found = [told().cell_of(seq) for seq in range(1, 11)]
    assert found == [None, None, 1, 1, 1, 1, None, None, 4, 4]


def test_a_span_has_the_same_cell_from_its_first_request_to_the_next_one_s() -> None:
    senders = told()
    spans = {senders.span_of(seq) for seq in range(1, 11)}
    assert spans == {(0, 3, None), (3, 7, 1), (7, 9, None), (9, inf, 4)}
    for first, after, cell in spans:
        inside = range(first, 20 if after == inf else int(after))
        assert {senders.cell_of(seq) for seq in inside} == {cell}


def test_others_learn_the_same_from_what_is_told_piece_by_piece_in_any_order() -> None:
    pieces = [told().since(seq) for seq in (8, 4, 1)]
    assert pieces == [((7, None), (9, 4)), ((3, 1), (7, None), (9, 4)), ((3, 1), (7, None), (9, 4))]
    other = Senders()
    for piece in (*pieces, pieces[0]):
        other.learn(piece)
    assert other.since(0) == told().since(0)


def test_a_copy_goes_on_by_itself() -> None:
    senders = told()
    twin = senders.copy()
    twin.begin(20, 5)
    assert (senders.cell_of(20), twin.cell_of(20)) == (4, 5)


def test_of_very_many_cells_the_oldest_are_forgotten_and_not_mistaken() -> None:
    senders = Senders()
    for cell in range(1, 3 * KEPT):
        senders.begin(10 * cell, cell)
    assert senders.cell_of(10) is None, "it is unknown, not another's"
    newest = 3 * KEPT - 1
    known = [newest - KEPT + 1, newest]
    assert [senders.cell_of(10 * cell) for cell in known] == known
    assert len(senders.since(0)) <= 2 * KEPT


def test_a_device_knows_who_has_sent_what_recorded_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    origins = {cell: Origin(cell) for cell in (1, 2, 3)}
    with System("host") as lab:
        (device,) = lab.devices
        senders = lab._supervisors[0].requests.outbox.senders
        whose: dict[int, int] = {}

        def sends(cell: int, send: Callable[[], object]) -> None:
            monkeypatch.setattr(cell_origin, "_current", origins[cell])
            first = device.last_number + 1
            send()
            sent = range(first, device.last_number + 1)
            assert sent
            whose.update(dict.fromkeys(sent, cell))

        sends(1, lambda: device.put([1.0]).result())
        monkeypatch.setenv("ACCEL_LAB_A_SECRET", "1")  # which no record is told
        sends(2, device.settle)
        sends(1, lambda: device.put([2.0]).result())  # as a finalizer of a cell that is over may
        sends(3, lambda: device.put([3.0]).get())
        assert {number: senders.cell_of(number) for number in whose} == whose
