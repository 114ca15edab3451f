"""Words that a card writes for a thread that looks at them."""

import os
import sys

from accel_lab.compute.arena.arena import Arena
from accel_lab.compute.arena.completion_flag import WORD, Flag, Flags
from accel_lab.compute.message.builtin import Sign

LOST = ("gpu0", 1)


def write(arena: Arena, sign: Sign) -> None:
    """Do what the card does."""
    segment = next(one for one in arena.segments if one.id == sign.segment)
    os.pwrite(segment.fd, sign.value.to_bytes(WORD, sys.byteorder), sign.offset)


def raised(arena: Arena, flag: Flag) -> Sign:
    sign = flag.sign()
    assert not flag.is_set
    write(arena, sign)
    assert flag.is_set
    return sign


def ready() -> tuple[Arena, Flags]:
    arena = Arena(1 << 20, segment_bytes=1 << 16)
    return arena, Flags(arena)


def test_a_flag_is_set_by_what_its_own_request_has_written() -> None:
    arena, flags = ready()
    first, second = flags.take(), flags.take()
    for _ in range(10):
        sign = raised(arena, first)
        assert not second.is_set
        write(arena, sign._replace(value=0))
        assert not first.is_set


def test_one_that_is_answered_is_taken_again_and_two_never_share() -> None:
    _, flags = ready()
    first, second = flags.take(), flags.take()
    places = {first.sign()[:2], second.sign()[:2]}
    assert len(places) == 2
    second.settle(None)
    assert flags.take() is second
    assert flags.take() not in (first, second)


def test_what_a_request_that_was_given_up_writes_late_sets_nothing() -> None:
    """It comes before what the next one writes, for a stream keeps its order."""
    arena, flags = ready()
    for _ in range(10):
        flag = flags.take()
        late = flag.sign()
        flag.settle(None)
        assert flags.take() is flag
        sign = flag.sign()
        write(arena, late)
        assert not flag.is_set
        write(arena, sign)
        assert flag.is_set
        flag.settle(None)


def test_the_word_of_a_lost_context_is_nobodys_until_its_process_is_gone() -> None:
    arena, flags = ready()
    flag = flags.take()
    place = flag.sign()[:2]
    flag.settle(LOST)
    taken = [flags.take() for _ in range(20)]
    assert place not in {one.sign()[:2] for one in taken}
    arena.reaped(LOST)
    assert place in {flags.take().sign()[:2] for _ in range(20)}
