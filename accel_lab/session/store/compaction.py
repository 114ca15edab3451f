"""What the newest commits of a folder need, and the removal of all else."""

from typing import Any, NamedTuple

import msgspec

from accel_lab.display.sizes import size
from accel_lab.errors import SessionDamaged
from accel_lab.session.store.commit import Recipe, keyed
from accel_lab.session.store.folder import Folder


class Compacted(NamedTuple):
    """What was removed of a folder.

    Attributes:
        commits, contents, uploads: how many.
        nbytes: how large contents and uploads were.
    """

    commits: int
    contents: int
    uploads: int
    nbytes: int

    def with_uploads(self, sizes: dict[str, int]) -> "Compacted":
        """Return it with the uploads that were removed, too."""
        return self._replace(uploads=len(sizes), nbytes=self.nbytes + sum(sizes.values()))

    def __repr__(self) -> str:
        what = f"{self.commits} commits, {self.contents} contents and {self.uploads} uploads"
        return f"<Compacted: {what} removed, {size(self.nbytes)}>"


class Needed:
    """What some commits of a folder need.

    Attributes:
        numbers: of the commits.
        contents: the keys of contents.
        uploads: the keys of what messages took from the arena, in the journal.

    Raises:
        SessionDamaged: something of them is damaged or missing.
        SessionError: it cannot be read.
    """

    def __init__(self, folder: Folder, numbers: list[int]) -> None:
        self.numbers = numbers
        self.contents: set[str] = set()
        self.uploads: set[str] = set()
        self._folder = folder
        for number in numbers:
            commit, _ = folder.read(number)
            self.contents.update(commit.definitions.values())
            for word, key in commit.keyed:
                self._take(word, key)

    def _take(self, word: str, key: str) -> None:
        if key in self.contents:
            return
        self.contents.add(key)
        if word == "large":
            for inner, of in keyed([self._decoded(key, list[Any])]):
                self._take(inner, of)
        elif word == "made":
            recipe: Recipe = self._decoded(key, Recipe)
            self.uploads.update(step.key for step in recipe.steps if step.key)

    def _decoded(self, key: str, kind: Any) -> Any:
        try:
            return msgspec.msgpack.decode(self._folder.content(key), type=kind)
        except msgspec.MsgspecError as error:
            path = str(self._folder.content_path(key))
            raise SessionDamaged(f"{path} is damaged: {error}", path=path) from error


def remove_others(folder: Folder, needed: Needed) -> Compacted:
    """Remove all other commits, and the contents that these do not need.

    Raises:
        SessionError: the folder cannot be written.
    """
    others = [number for number in folder.numbers if number not in needed.numbers]
    contents, nbytes = folder.remove(others, needed.contents)
    return Compacted(len(others), contents, 0, nbytes)
