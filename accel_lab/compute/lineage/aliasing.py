"""Which buffers share memory, or may share it: views and what they view."""

from collections.abc import Collection, Iterable

MOST_ROOTS = 16


class Aliasing:
    """The memory of the buffers of one device; for one thread at a time.

    It is told by its roots. A function's answer may be a view of any operand, so it has the roots
    of all of them. Two buffers that have a root in common may share memory.
    """

    def __init__(self) -> None:
        self._of: dict[int, tuple[int, ...]] = {}
        self._one: dict[int, int] = {}  # roots that are not told apart any more
        self._renewed = 0

    def __contains__(self, id_: int) -> bool:
        return id_ in self._of

    def enter(self, id_: int, shares: Collection[int], live: Collection[int]) -> tuple[int, ...]:
        """A buffer is made that may have the memory of any of these, or has its own.

        Returns the roots that count as the first of them from now on: none but where a long chain
        of functions would have too many.

        Parameters:
            live: those whose memory is still to be told apart from others'.
        """
        roots = tuple(self.of_all(shares)) if len(shares) > 1 else self.of(*shares or (id_,))
        past: list[int] = []
        if len(roots) > MOST_ROOTS:
            past = sorted(root for root in roots if root > 0 and root not in live)
            self._one.update((root, past[0]) for root in past[1:])
        self._of[id_] = tuple({self._root(root) for root in roots}) if past else roots
        return tuple(past)

    def renew(self, id_: int) -> int:
        """A buffer has memory of its own from now on; returns its root, which is no buffer's id."""
        self._renewed -= 1
        self._of[id_] = (self._renewed,)
        return self._renewed

    def join(self, id_: int, other: int) -> None:
        """Two buffers may share memory, after all, and so may all that may share theirs."""
        roots, (root, *others) = self.of(id_), self.of(other)
        if {root, *others}.isdisjoint(roots):
            self._one.update(dict.fromkeys(roots, root))

    def of(self, id_: int) -> tuple[int, ...]:
        """Return the roots of a buffer."""
        roots = self._of.get(id_, (id_,))
        return tuple({self._root(root) for root in roots}) if self._one else roots

    def _root(self, root: int) -> int:
        while (other := self._one.get(root, root)) != root:
            root = other
        return root

    def of_all(self, ids: Iterable[int]) -> set[int]:
        """Return the roots of these buffers."""
        return {root for id_ in ids for root in self.of(id_)}

    def sharing(self, id_: int, ids: Iterable[int]) -> set[int]:
        """Return those of `ids` that may share the memory of a buffer, with itself."""
        roots = set(self.of(id_))
        return {other for other in ids if not roots.isdisjoint(self.of(other))}

    def sharing_each(self, ids: Iterable[int], others: Iterable[int]) -> dict[int, set[int]]:
        """Return for each of `ids` what `sharing` does; looks at the others once."""
        roots = {id_: self.of(id_) for id_ in ids}
        found: dict[int, set[int]] = {root: set() for some in roots.values() for root in some}
        for other in others if found else ():
            for root in self.of(other):
                if root in found:
                    found[root].add(other)
        return {id_: set().union(*(found[root] for root in some)) for id_, some in roots.items()}

    def keep(self, ids: Collection[int]) -> None:
        """Forget all other buffers."""
        self._of = {id_: self.of(id_) for id_ in self._of if id_ in ids}
        self._one.clear()
