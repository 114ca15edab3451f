"""A system whose names outlive the process: each cell's are committed to a folder."""

import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import Ref
from accel_lab.compute.output import cell_origin
from accel_lab.compute.requests.requests import closed
from accel_lab.compute.residency.notebook_names import Namespace, notebook
from accel_lab.errors import AccelError, InvalidArgument, JournalError, SessionError
from accel_lab.journal.stores.sqlite import SqliteStore
from accel_lab.session.buffers.plans import Plans
from accel_lab.session.buffers.rebuilding import NEEDS_LEAVE, Rebuilding
from accel_lab.session.buffers.record import Records
from accel_lab.session.cells_again import CellsAgain
from accel_lab.session.decoder import DEFINED, Decoder, NeedsCells, NeedsLeave
from accel_lab.session.moment import Difference, Moment, difference
from accel_lab.session.notebook import Definitions, as_python, follow_cells, shell, user_names
from accel_lab.session.plain.encoder import Encoder, Node, NotKept
from accel_lab.session.plain.randoms import states
from accel_lab.session.plain.secret import Secrets
from accel_lab.session.reopened import Reopened
from accel_lab.session.store.commit import Commit
from accel_lab.session.store.compaction import Compacted, Needed, remove_others
from accel_lab.session.store.folder import Folder
from accel_lab.system import System


class Session(System):
    """A system in a folder: `lab = accel_lab.open("run.lab")`.

    In a notebook each cell is committed when it has ended, in a program `commit` does it. Whatever
    ends the process, the folder has all that was committed, and the next `open` binds the names
    again.

    Attributes:
        opened: what came back when it was opened.
        leave: whether code in the folder may run; None where it may if this user has written it.
        is_dropped: whether nobody had it any more, so that it is being closed.

    Parameters:
        folder: locked by this process; closed with the session.
        names: the namespace whose names are kept.
    """

    _instead = "it is one folder, open in one process; open another with accel_lab.open()"
    keeps_all = True
    again = "open its folder again with accel_lab.open()"

    is_dropped = False

    def __init__(
        self,
        folder: Folder,
        names: Namespace,
        backend: str = "auto",
        devices: int | list[int] | None = None,
        **options: Any,
    ) -> None:
        self._closed = True
        self._folder = folder
        self._names = names
        self._committing = threading.RLock()
        self._secrets = Secrets()
        self._definitions = Definitions(folder, self._secrets)
        self._carried: dict[str, Node] = {}
        self.leave: bool | None = None
        self._is_ours = True  # what is committed, as long as no other's code comes along
        self._unfollow: Callable[[], None] | None = None
        self._store = SqliteStore(folder.journal)
        self.opened = Reopened(str(folder.path))
        super().__init__(backend, devices, journal=self._store, recover="replay", **options)
        assert self._writer is not None
        by_name = zip((one.name for one in self.devices), self._assembly.lineages, strict=True)
        self._plans = Plans(folder, self._writer.session, dict(by_name))
        self._records = Records(self._store)
        self._numbers = folder.numbers

    @property
    def path(self) -> str:
        """The folder."""
        return str(self._folder.path)

    @property
    def commits(self) -> list[int]:
        """The numbers of what was committed, in order."""
        return list(self._numbers)

    # Committing.

    def commit(self) -> Commit:
        """Keep what the names stand for now, on the disk; blocks until they are there.

        Buffers of which only the bytes can be kept are waited for. What cannot be kept is in the
        answer's `lost`, by name, with the reason.

        Raises:
            SessionError: the folder cannot be written; the commits before stay.
            JournalUnavailable: nor can the journal.
            SystemClosed: the session is closed.
        """
        return self._commit(cell_origin.current().cell, "")

    def _commit(self, cell: int | None, source: str) -> Commit:
        if self.is_closed:
            raise closed(self.name, self.again)
        with self._committing:
            self.flush()
            names = user_names(self._names)
            kept = Keeping(self._folder, self._definitions, self.devices)
            self._encode(names, kept, None)  # to find the handles
            lost_entries = self.journal.lost()
            gap = f"the journal has lost {lost_entries} entries" if lost_entries else ""
            kept.nodes = self._plans.of(kept.refs, self.devices, gap)
            nodes, encoder, lost = self._encode(names, kept, self._secrets)
            for name in [one for one in self._carried if one in names]:
                del self._carried[name]
            keys = self._definitions.keys
            nodes |= {name: encoder.add(node) for name, node in self._carried.items()}
            number = (self._numbers[-1] if self._numbers else 0) + 1
            assert self._writer is not None
            commit = Commit(
                number,
                cell,
                self._secrets.scrubbed(source),
                time.time(),
                nodes,
                encoder.objects,
                encoder.encode("", states()),
                {name: key for name, key in keys.items() if name in nodes},
                {name: self._secrets.scrubbed(why) for name, why in lost.items()},
                self._writer.session,
            )
            self._folder.write(commit, seal=self._is_ours)
            self._numbers.append(number)
            return commit

    def compact(self, keep: int = 100) -> Compacted:
        """Commit, and forget all but the newest commits, with what only older ones need.

        Arrays and texts go that no commit names any more, and uploads of earlier kernels that no
        buffer of a commit is made of. Names are bound as before; what `at` has returned of an older
        commit and nobody has used cannot be made any more. Whatever ends the process in the middle,
        the newest commits can be had. Blocks while the kept commits are read.

        Parameters:
            keep: how many commits stay, with the one that this makes.

        Raises:
            InvalidArgument: that is not a whole number of 1 or more.
            SessionError: the folder cannot be written.
            SessionDamaged: a commit that stays is damaged; nothing is removed.
            AccelError: as `commit`.
        """
        if type(keep) is not int or keep < 1:
            raise InvalidArgument(f"keep is how many commits stay, 1 or more, not {keep!r}")
        with self._committing:
            self.commit()
            needed = Needed(self._folder, self._numbers[-keep:])
            needed.contents.update(self._definitions.keys.values())
            self._plans.forget()
            gone = remove_others(self._folder, needed)
            self._numbers[:] = self._folder.numbers
            assert self._writer is not None
            try:
                sizes = self._store.drop_contents(needed.uploads, self._writer.session)
            except JournalError as error:
                raise SessionError(f"{self.path}: {error}") from error
            return gone.with_uploads(sizes)

    def _encode(
        self, names: Mapping[str, Any], kept: "Keeping", secrets: Secrets | None
    ) -> tuple[dict[str, Node], Encoder, dict[str, str]]:
        """Return what names stand for, with what they share, and why some are not kept."""
        encoder = Encoder(kept, secrets, self)
        nodes: dict[str, Node] = {}
        lost: dict[str, str] = {}
        for name, value in names.items():
            try:
                nodes[name] = encoder.encode(name, value)
            except NotKept as error:
                lost[name] = str(error)
        return nodes, encoder, lost

    def _after_cell(self, cell: int | None, source: str) -> None:
        """Commit what a cell has left; what is wrong is told below it."""
        if self.is_closed:
            return
        try:
            self._definitions.note(as_python(shell(), source), f"<cell {cell}>")
            self._commit(cell, source)
        except AccelError as error:
            text = f"this cell is not committed to {self._folder.path}: {error}"
            cell_origin.current().say(text)

    def follow(self, ipython: Any) -> None:
        """Commit behind each cell of an IPython from now on, until it is closed."""
        self._unfollow = follow_cells(ipython, self._after_cell)

    # Coming back.

    def restore(self, commit: Commit, *, is_ours: bool) -> None:
        """Bind the names of a commit again.

        Parameters:
            is_ours: whether this user has written it.

        Raises:
            SessionDamaged: something that it names is damaged or missing.
            SessionError: the folder cannot be read.
        """
        self._is_ours = is_ours or bool(self.leave)
        may_run = is_ours if self.leave is None else self.leave
        decoder = self._decoder(commit, may_run=may_run)
        again = CellsAgain(self._names, self._allowed, self._definitions)
        if self.leave and notebook() is self._names and any(map(decoder.is_object, commit.names)):
            numbers = [one for one in self._numbers if one <= commit.number]
            again.run([self._folder.read(one)[0] for one in numbers])
        self._bind(commit, decoder, again, may_run=may_run)

    def _bind(self, commit: Commit, decoder: Decoder, again: CellsAgain, *, may_run: bool) -> None:
        """Bind the names of a commit, but those that this kernel has bound already."""
        left = [name for name in commit.names if name in self._names and not self._is_over(name)]
        lost, later, values = dict(commit.lost), dict[str, str](), dict[str, Any]()
        for name in commit.names:
            if name in left:
                with suppress(AccelError, NeedsLeave, NeedsCells):
                    if _are_one(decoder.value(name), self._names[name]):
                        left.remove(name)
                continue
            try:
                values[name] = again.value(decoder, name)
            except (NeedsLeave, NeedsCells) as error:
                lost[name] = str(error)
                self._carry(commit, name)
                continue
            if not may_run and decoder.needs_code(name):
                later[name] = NEEDS_LEAVE
        self._definitions.keys = dict(commit.definitions)
        defined = {name for name, value in values.items() if value is DEFINED}
        for name in defined & self._names.keys():
            del self._names[name]
        self._names.update({name: value for name, value in values.items() if name not in defined})
        lost |= self._definitions.define(defined, commit.definitions, self._names)
        for name in defined & lost.keys():
            self._carry(commit, name)
        decoder.set_randoms()
        bound = tuple(name for name in values if name in self._names)
        cells = again.count, again.failed
        self.opened = Reopened(
            self.path, commit.number, commit.cell, bound, lost, later, tuple(left), *cells
        )

    def require(self, *, commit: int | None, run_code: bool | None) -> None:
        """Refuse to be opened otherwise than it is.

        Raises:
            SessionError: at another commit, or with other leave.
        """
        if commit not in (None, self.opened.commit):
            text = f"{self.path} is open here, and has gone on from commit {self.opened.commit}"
            remedy = f"Look back with lab.at(commit={commit}), or lab.close() it first."
            raise SessionError(f"{text}, not {commit}", remedy=remedy)
        if run_code not in (None, self.leave):
            text = f"{self.path} is open here, and not with run_code={run_code}"
            raise SessionError(text, remedy="Close it with lab.close() first.")

    # Looking back, and aside.

    def fork(
        self,
        names: Mapping[str, Any] | None = None,
        *,
        drop: bool = False,
        timeout_s: float = 120.0,
    ) -> Any:
        """Return a second system from this moment, of the session's names; see `System.fork`.

        Buffers that wait until they are used are made for it.
        """
        asked = user_names(self._names) if names is None else names
        return super().fork(asked, drop=drop, timeout_s=timeout_s)

    def at(self, cell: int | None = None, *, commit: int | None = None) -> Moment:
        """Return the names as they were after a cell, or at a commit; nothing is bound.

        Parameters:
            cell: its number, of the newest kernel that has run one of this number.
            commit: the number of a commit, from 1, counted on through all kernels.

        Raises:
            InvalidArgument: not one number is given.
            SessionError: there is no such cell or commit.
            SessionDamaged: it is damaged.
        """
        given = [one for one in (cell, commit) if one is not None]
        if [type(one) for one in given] != [int]:
            text = ", ".join(map(repr, given)) or "none"
            raise InvalidArgument(f"at() takes the number of a cell, or commit=, and not {text}")
        for number in reversed(self._numbers):
            if commit is None or commit == number:
                found, is_ours = self._folder.read(number)
                if commit is not None or found.cell == cell:
                    may_run = is_ours if self.leave is None else self.leave
                    return Moment(found, self._decoder(found, may_run=may_run))
        what = f"cell {cell}" if commit is None else f"number {commit}"
        numbers = self._numbers
        known = f"commits {numbers[0]} to {numbers[-1]}" if numbers else "none yet"
        text = f"{self.path} has no commit of {what}; it has {known}"
        raise SessionError(text)

    def diff(
        self, before: int | Moment, after: int | Moment, *, most_bytes: int | None = None
    ) -> Difference:
        """Say how the names differ after two cells; blocks, for buffers are compared.

        In a notebook it also draws what the first message that differs has changed.

        Parameters:
            before, after: the numbers of cells, or what `at` has returned.
            most_bytes: how large a buffer may be to be compared; any when not given.

        Raises:
            SessionError: as `at`.
            AccelError: a buffer cannot be made again.
        """
        one, other = (
            when if isinstance(when, Moment) else self.at(when) for when in (before, after)
        )
        return difference(one, other, most_bytes)

    def _carry(self, commit: Commit, name: str) -> None:
        """Keep what a name stood for in the next commits, though it could not be had here."""
        node = commit.names[name]
        found = commit.objects[node[1]] if isinstance(node, list) and node[0] == "o" else None
        if found is not None and found[0] in ("module", "from", "defined", "resident"):
            self._carried[name] = found

    def _decoder(self, commit: Commit, *, may_run: bool) -> Decoder:
        learn = self._plans.learn
        made = Rebuilding(self._folder, self._records, self._stand_in, learn, may_run=may_run)
        return Decoder(commit, self._folder, made, self._stand_in, self, may_run=may_run)

    def _allowed(self, commit: Commit) -> Decoder:
        return self._decoder(commit, may_run=True)

    def _stand_in(self, name: str) -> Device:
        """Return the device of a recorded name, or the one that takes its place."""
        for device in self.devices:
            if device.name == name:
                return device
        digits = "".join(filter(str.isdigit, name)) or "0"
        return self.devices[int(digits) % len(self.devices)]

    def _is_over(self, name: str) -> bool:
        """Whether a name stands for something of a system that is closed, or holds such a thing."""
        return any(map(_is_closed, _inside(self._names[name])))

    def close(self) -> None:
        """End every context, and let others open the folder; as `System.close`."""
        if self._unfollow is not None:
            self._unfollow()
        super().close()
        if self._closed and not self._forked:
            self._folder.close()

    def __del__(self) -> None:
        """As of a system; weak references find it until it is closed."""
        self.is_dropped = True
        if not getattr(self, "_closed", True):
            self._folder.leave()
        super().__del__()


def _inside(value: Any) -> Iterator[Any]:
    """Yield a value, and what is in it where that is a container of Python's own."""
    ahead, seen = [value], set[int]()
    while ahead:
        one = ahead.pop()
        yield one
        kind = type(one)
        if kind in (list, tuple, set, frozenset, dict) and id(one) not in seen:
            seen.add(id(one))
            ahead += [*one.keys(), *one.values()] if kind is dict else one


def _is_closed(value: Any) -> bool:
    """Whether this is of a system that is closed."""
    if isinstance(value, System):
        return value.is_closed
    device = value if isinstance(value, Device) else getattr(value, "device", None)
    return isinstance(device, Device) and device.state == "stopped"


def _are_one(one: Any, other: Any) -> bool:
    """Whether two values are the same: one object, as a module is, or equal numbers or texts."""
    kind = type(one)
    return one is other or (kind is type(other) and kind in (int, float, str) and one == other)


class Keeping:
    """What an encoder asks of a session while it commits.

    Attributes:
        nodes: what is said of handles, by `id`; None while they are looked for.
        refs: those that were found.
    """

    def __init__(self, folder: Folder, definitions: Definitions, devices: list[Device]) -> None:
        self.nodes: dict[int, Node | NotKept] | None = None
        self.refs: list[Ref[Any]] = []
        self._folder = folder
        self._definitions = definitions
        self._devices = devices

    def keep(self, data: bytes | memoryview) -> str:
        """Keep bytes, and return their key; nothing while handles are looked for."""
        return "" if self.nodes is None else self._folder.keep(data)

    def ref(self, ref: Ref[Any]) -> Node:
        """Return what tells how to have a buffer again."""
        if self.nodes is None:
            self.refs.append(ref)
            return [None]
        found = self.nodes[id(ref)]
        if isinstance(found, NotKept):
            raise found
        return found

    def device(self, device: Device) -> str:
        """Return the name of a device of the session."""
        if not any(device is one for one in self._devices):
            raise NotKept(f"{device.name} is of another system")
        return device.name

    def definition(self, name: str, value: Any) -> bool:
        """Whether the text of a cell is known that defines this."""
        return self._definitions.has(name, value)


running: "weakref.WeakValueDictionary[str, Session]" = weakref.WeakValueDictionary()
"""The sessions that are open in this process, by the real paths of their folders."""


def refuse(options: Mapping[str, Any]) -> None:
    """Refuse what a session says itself.

    Raises:
        InvalidArgument: such an option was given.
    """
    for name in ("journal", "journal_bytes", "recover", "cluster"):
        if name in options:
            raise InvalidArgument(f"open() has no {name}: a session keeps a journal in its folder")
