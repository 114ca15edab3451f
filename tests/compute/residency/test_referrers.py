"""What refers to objects: the same found for many as for few, in a time that is no product."""

import gc
import time

from accel_lab.compute.residency.referrers import FEW, referrers


class Thing:
    """Something that may be held."""


def test_many_have_the_referrers_that_few_have() -> None:
    things = [Thing() for _ in range(4 * FEW)]
    holders = [[one] for one in things[::2]]
    table = dict(enumerate(things[::3]))
    found = {id(one) for one in referrers(things)}
    assert id(things) not in found
    assert {id(one) for one in (*holders, table)} <= found
    few = {id(one) for one in referrers(things[:2]) if one in (holders, table, holders[0])}
    assert {id(holders[0]), id(table)} <= few


def test_what_nothing_holds_has_none() -> None:
    things = [Thing() for _ in range(2 * FEW)]
    gc.collect()
    lists_of_all = [one for one in referrers(things) if type(one) is list]
    assert lists_of_all == []


def test_many_times_as_many_do_not_take_as_many_times_as_long() -> None:
    def taken(count: int) -> float:
        things = [Thing() for _ in range(count)]
        gc.collect()
        began = time.thread_time()
        referrers(things)
        return time.thread_time() - began

    assert taken(32_000) < 16 * min(taken(1000) for _ in range(3))
