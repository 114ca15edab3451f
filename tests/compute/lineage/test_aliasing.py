"""Which buffers may share memory, as far as their messages tell."""

from accel_lab.compute.lineage.aliasing import MOST_ROOTS, Aliasing


def made(*entries: tuple[int, tuple[int, ...]], live: tuple[int, ...] = ()) -> Aliasing:
    aliasing = Aliasing()
    for id_, shares in entries:
        aliasing.enter(id_, shares, live)
    return aliasing


def test_an_answer_may_be_any_operand_but_they_are_not_each_other() -> None:
    aliasing = made((1, ()), (2, ()), (3, (1, 2)), (4, (3,)), (5, (2,)))
    ids = range(1, 6)
    assert [aliasing.sharing(id_, ids) for id_ in ids] == [
        {1, 3, 4},
        {2, 3, 4, 5},
        {1, 2, 3, 4, 5},
        {1, 2, 3, 4, 5},
        {2, 3, 4, 5},
    ]


def test_what_is_made_anew_shares_with_its_later_views_alone() -> None:
    aliasing = made((1, ()), (2, (1,)))
    root = aliasing.renew(1)
    aliasing.enter(3, (1,), ())
    assert aliasing.of(3) == (root,)
    assert aliasing.sharing(1, (1, 2, 3)) == {1, 3}


def test_what_is_forgotten_still_tells_of_what_is_not() -> None:
    aliasing = made((1, ()), (2, (1,)), (3, (1,)))
    aliasing.keep({2, 3})
    assert 1 not in aliasing
    assert aliasing.sharing(2, (2, 3)) == {2, 3}


def test_a_long_chain_has_few_roots_and_those_in_use_are_told_apart() -> None:
    aliasing, live = made((1, ()), (2, ())), (1, 2)
    state = 1
    for id_ in range(3, 300, 2):
        aliasing.enter(id_, (), live)
        aliasing.enter(id_ + 1, (state, id_), live)
        state = id_ + 1
        assert len(aliasing.of(state)) <= MOST_ROOTS + 1
    assert aliasing.sharing(state, (1, 2, 3, 299)) == {1, 3, 299}
    assert aliasing.sharing(3, (1, 2)) == set()
    aliasing.keep({1, 2, 3, state})
    assert aliasing.sharing(state, (1, 2, 3)) == {1, 3}
