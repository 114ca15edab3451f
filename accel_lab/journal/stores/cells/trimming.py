"""Forgetting the oldest of a journal in cells, while others append to it."""

import time
from collections.abc import Callable, Sequence

from accel_lab.journal.stores.cells.abandoned import clear
from accel_lab.journal.stores.cells.cells import Cells, every, piece_keys
from accel_lab.journal.stores.cells.commit import Commit, Fact, number_key
from accel_lab.journal.stores.cells.records import Content, Session, content_of, session_of
from accel_lab.journal.stores.store import Trimmed, judge

ABANDONED_S = 3600.0
"""What was begun to be appended so long ago will never be committed."""


class Trimming:
    """One pass over a journal.

    A group of a device is gone with the mark that stands above its number, and with its commit's
    cell. The last commit stays, for the next number follows from it.

    Parameters:
        place: returns the whole name of a partition.
        commits: all there are, in order, with their facts.
    """

    def __init__(
        self,
        cells: Cells,
        place: Callable[[str], str],
        commits: Sequence[Commit],
        facts: Sequence[Sequence[Fact]],
    ) -> None:
        self._cells = cells
        self._in = place
        self._commits = list(zip(commits, facts, strict=True))
        self._tokens = {commit.token for commit in commits}
        sessions = every(cells, place("sessions"))
        self._sessions: dict[str, Session] = {
            name: session_of(data, cells.name) for name, data in sessions
        }

    def trim(self, first: int, keep_bytes: int) -> Trimmed:
        """Forget so that at most this is left.

        Parameters:
            first: the number below which groups of devices are gone already.
        """
        known = dict(every(self._cells, self._in("contents")))
        contents = {key: content_of(data, self._cells.name) for key, data in known.items()}
        begun = self._being_appended()
        named = {key for _, facts in self._commits for fact in facts for key in fact.keys}
        sizes = {
            key: content.nbytes
            for key, content in contents.items()
            if key in named or content.token not in begun
        }
        weighed = [
            one
            for commit, facts in self._commits
            for one in commit.weighed(facts, first)
            if one.device or commit is not self._commits[-1][0]
        ]
        last = self._commits[-1][0].next - 1 if self._commits else 0
        verdict = judge(weighed, sizes, last, keep_bytes)
        if verdict.groups:
            self._mark(max(first, verdict.first))
            self._forget(set(verdict.groups), max(first, verdict.first))
        for key in verdict.keys:
            if self._cells.delete_if(self._in("contents"), key, known[key]):
                self._clear(key, contents[key])
        self._clear_abandoned()
        return verdict.trimmed

    def _mark(self, first: int) -> None:
        """Have groups of devices below this number count as gone."""
        partition = self._in("first")
        self._cells.put(partition, {number_key(first): b"."})
        older = [key for key in self._cells.keys(partition) if key < number_key(first)]
        self._cells.delete(partition, older)

    def _forget(self, gone: set[int], first: int) -> None:
        for commit, facts in self._commits:
            numbers = range(commit.first, commit.next)
            kept = [
                number
                for number, fact in zip(numbers, facts, strict=False)
                if number not in gone and (not fact.device or number >= first)
            ]
            partition = self._in(f"data/{commit.token}")
            if not kept and commit is not self._commits[-1][0]:
                is_mine = self._cells.delete_if(self._in("commits"), commit.key, commit.encoded())
                if is_mine and not commit.is_alone:
                    self._cells.delete(partition, self._cells.keys(partition))
            elif commit.inline is None:
                for number, fact in zip(numbers, facts, strict=False):
                    if number in gone and fact.device:
                        name = str(number - commit.first)
                        self._cells.delete(partition, piece_keys(name, fact.nbytes))

    def _clear(self, key: str, content: Content) -> None:
        partition = self._in(f"content/{content.token}")
        self._cells.delete(partition, piece_keys(key, content.nbytes))

    def _being_appended(self) -> set[str]:
        """Return what may still be committed: contents come before the commit that names them."""
        now = time.time()
        return {
            token
            for session in self._sessions.values()
            for token in session.tokens
            if token not in self._tokens and session.at > now - ABANDONED_S
        }

    def _clear_abandoned(self) -> None:
        """Take away what was never committed, and sessions of which nothing is left."""
        before = time.time() - ABANDONED_S
        alive = {commit.session for commit, _ in self._commits}
        for name, session in self._sessions.items():
            if session.at > before:
                continue
            for token in session.tokens:
                if token not in self._tokens:
                    clear(self._cells, self._in, token)
            if name not in alive:
                self._cells.delete(self._in("sessions"), [name])
