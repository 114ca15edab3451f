"""A system's session in a file: what every view drew can be drawn again, without the system."""

import atexit
import os
import threading
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from accel_lab.actor.events import ActorRestarted, ActorStopped, Event, warn_of
from accel_lab.compute.events import lifecycle as facts
from accel_lab.compute.events.patterns import PatternsSampled
from accel_lab.compute.events.samples import (
    HealthSampled,
    MemorySampled,
    PeersSampled,
    SystemEnded,
    TreeSampled,
    WorkTraced,
    WorldsSampled,
)
from accel_lab.compute.machine.private_folder import private_opener
from accel_lab.display.sizes import size
from accel_lab.errors import InvalidArgument, RecordingDamaged, RecordingError
from accel_lab.uncopied import Uncopied
from accel_lab.views.past.player import Line, Player
from accel_lab.views.scene.fact_lines import decode, encode, header, read_header, stamp
from accel_lab.views.scene.fault_mark import is_asked
from accel_lab.views.scene.observer import Lab, Observer, Want, observer_of
from accel_lab.views.scene.recap import beside_devices, beside_work
from accel_lab.views.scene.sample_changes import REPEATING, repeats, subject
from accel_lab.views.scene.scene import SAMPLE_TYPES, Scene
from accel_lab.views.widget.publisher import DEFAULT_HZ, PUBLISHER, check_rate

LIMIT_BYTES = 256 << 20
LEAST_BYTES = 16 << 10
FAULTS = (
    ActorRestarted,
    facts.CircuitOpened,
    facts.ContextLost,
    facts.LibraryRestarted,
    facts.RequestFailed,
)
UNSURE = (ActorRestarted, ActorStopped, facts.ContextLost, facts.RequestFailed)
"""Of these each says by itself whether it is one."""
PIECE_BYTES = 4 << 20
COVERING = (TreeSampled, MemorySampled, PatternsSampled, PeersSampled)
"""What one of these says of a generation, the next says anew."""
Cover = tuple[type[Event], str, int] | None
_END = b'{"end":'
_KEPT = 8  # one part in so many is for what happens alone, when samples have used up the rest


class _End(msgspec.Struct):
    facts: int
    dropped: int


class Recording(Uncopied):
    """The facts of one system, in a file.

    While the system is recorded it has what is in the file at the last `read`. As the source of a
    view it shows where its `player` is, which all views of it share: at first the end.

    Attributes:
        path: of the file.
        name: of the system.
        times: when each fact was, in wall seconds; never descending.
        faults, turns: which facts are failures, and which new generations.
        whole: whether its end was written, so that nothing more comes.
    """

    _instead = "read its file where you need it"

    kind = "recording"
    lab: Lab | None = None  # a view's buttons have nothing to act upon
    ended = False  # one can always go back

    def __init__(self, path: str | Path, recorder: "Recorder | None" = None) -> None:
        self.path = Path(path)
        self.whole = False
        self._damage = ""
        self._rest = b""
        self._dropped = 0
        self._recorder = recorder
        self._covers: list[Cover] = []
        self._known: dict[Cover, Cover] = {}
        self._places = array("Q", [0])
        self._last = -float("inf")
        self._reading = threading.Lock()
        self.lock = threading.RLock()
        self.times = array("d")
        self.faults = array("Q")
        self.turns = array("Q")
        try:
            self._file = self.path.open("rb", buffering=0)
        except OSError as error:
            raise RecordingError(f"{path} cannot be read: {error}") from error
        try:
            self.name = self._begin()
            self.read()
        except RecordingError as error:
            self._file.close()
            raise type(error)(f"{path}: {error}") from error
        # Not by `__del__`: in a cycle, as with a player, the file may be collected first.
        weakref.finalize(self, self._file.close)

    @classmethod
    def open(cls, path: str | Path) -> "Recording":
        """Open a recording; blocks while its lines are counted, about a second for 300 000.

        Raises:
            RecordingError: there is none, or it is of a later version; says which part of it.
        """
        return cls(path)

    def read(self) -> None:
        """Take in what was written since; blocks for the disk.

        Raises:
            RecordingError: it holds what a later version wrote, by name.
        """
        piece = PIECE_BYTES
        with self._reading:
            while self._goes_on():
                data = os.pread(self._file.fileno(), piece, self._places[-1])
                *lines, self._rest = data.split(b"\n")
                if not lines:
                    if len(data) < piece:
                        return
                    piece *= 2
                for line in lines:
                    if self._goes_on():
                        self._index(line)

    @property
    def damage(self) -> str:
        """What ends it early; empty when it is whole as far as it was read."""
        cut = "its last line is cut off" if self._rest else ""
        return self._damage or cut

    @property
    def dropped(self) -> int:
        """How many facts were left out because the file had its size."""
        return self._dropped if self._recorder is None else self._recorder.dropped

    @cached_property
    def player(self) -> Player:
        """Where in it the views are that draw it."""
        return Player(self, lock=self.lock)

    def look(self) -> Scene:
        """Return the scene where the player is; any thread that holds `lock`."""
        return self.player.look()

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Do nothing: what was not sampled then cannot be sampled now."""

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the player moved; returns what ends that."""
        return self.player.on_news(callback)

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[Event]:
        """Yield the facts that have been read, in order."""
        for number in range(len(self)):
            yield self[number]

    def __getitem__(self, number: int) -> Event:
        """Return one fact by its number.

        Raises:
            RecordingDamaged: its line does not read.
        """
        if not 0 <= number < len(self):
            raise IndexError(f"there is no fact {number} in a recording of {len(self)}")
        begin, end = self._places[number], self._places[number + 1]
        return decode(os.pread(self._file.fileno(), end - begin, begin))

    def fold(self) -> "RecordedFold":
        """Return the scene before the first fact."""
        return RecordedFold(self, Scene())

    def needed(self, steps: range) -> Iterator[int]:
        """Yield those facts that no later one among these makes needless, in order."""
        seen: set[Cover] = set()
        wanted: list[int] = []
        for number in reversed(steps):
            cover = self._covers[number]
            if cover not in seen:
                wanted.append(number)
            if cover is not None:
                seen.add(cover)
        return reversed(wanted)

    def lines(self, steps: range) -> Sequence[Line]:
        """Return facts in words."""
        return [_line(self[number]) for number in steps]

    def close(self) -> None:
        """End the recording, if it is one that still goes on; blocks for the disk.

        Raises:
            RecordingError: the file could not be written.
        """
        if self._recorder is not None:
            self._recorder.close()
            self.read()
            if self._recorder.failure is not None:
                raise RecordingError(f"{self.path} was not written: {self._recorder.failure}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            with suppress(RecordingError):
                self.close()

    def __repr__(self) -> str:
        text = f"{len(self)} facts of {self.name}"
        if self._recorder is not None and not self._recorder.ended:
            text += ", and it goes on"
        elif not self.whole and not self.damage:
            text += ", without an end"
        if self.dropped:
            text += f", {self.dropped} were left out"
        if self.damage:
            text += f"; it is damaged: {self.damage}"
        return f"<Recording {self.path}: {text}>"

    def _goes_on(self) -> bool:
        return not self._damage and not self.whole

    def _begin(self) -> str:
        line = os.pread(self._file.fileno(), 64 << 10, 0).partition(b"\n")[0] + b"\n"
        self._places[0] = len(line)
        return read_header(line)

    def _index(self, line: bytes) -> None:
        """Note where a line is, and what it tells."""
        if line.startswith(_END):
            self._end(line)
            return
        try:
            kind, at, device, generation = stamp(line)
            fault = kind in FAULTS
            if kind in UNSURE:
                fault = _failed(decode(line))
        except RecordingDamaged as error:
            self._damage = f"after {len(self)} facts: {error}"
            return
        number = len(self._covers)
        if fault:
            self.faults.append(number)
        elif kind is facts.GenerationChanged:
            self.turns.append(number)
        cover = (kind, device, generation) if kind in COVERING else None
        self._covers.append(self._known.setdefault(cover, cover))
        self._places.append(self._places[-1] + len(line) + 1)
        self._last = max(self._last, at)
        self.times.append(self._last)

    def _end(self, line: bytes) -> None:
        try:
            end = msgspec.json.decode(line, type=dict[str, _End])["end"]
        except (msgspec.DecodeError, KeyError) as error:
            self._damage = f"its end does not read: {error}"
            return
        self._dropped, self.whole = end.dropped, True
        if end.facts != len(self):
            self._damage = f"it had {end.facts} facts, and {len(self)} are here"


class RecordedFold:
    """The scene after some facts of a recording."""

    def __init__(self, recording: Recording, scene: Scene) -> None:
        self.scene = scene
        self._recording = recording

    def advance(self, steps: range) -> None:
        """Take the next facts."""
        for number in self._recording.needed(steps):
            self.scene.add(self._recording[number])

    def copy(self) -> "RecordedFold":
        """Return one that goes on by itself."""
        return RecordedFold(self._recording, self.scene.copy())


class Recorder(Uncopied):
    """Follows an observer and writes what it hears, in the order of the scene.

    A tree, or a memory, that is what it was is not written again, but for the last of them. What
    happens goes before what is sampled: an eighth of the file is kept for it.
    """

    def __init__(self, observer: Observer, path: Path, name: str, limit_bytes: int) -> None:
        self.failure: OSError | None = None
        self.dropped = 0
        self._observer = observer
        self._limit = limit_bytes
        self._process = os.getpid()
        self._written = self._count = 0
        self._waiting: list[bytes] = []
        self._said: dict[tuple[type[Event], str], Event] = {}  # of each kind and device, the last
        self._unsaid: dict[tuple[type[Event], str], Event] = {}  # the same again, later
        self._ended = False
        if path.is_file():
            with suppress(OSError):  # then it is emptied
                path.resolve().unlink()  # whoever reads or writes it goes on with what they had
        self._file = open(path, "wb", buffering=0, opener=private_opener)  # noqa: SIM115
        self._put(header(name))
        atexit.register(self.close)
        with observer.lock:
            try:
                self._begin()
            except BaseException:  # as when the user stops it
                if not self._ended:
                    self._end()
                raise

    def _begin(self) -> None:
        """Write what was seen before, and follow."""
        for fact in retell(self._observer.look()):
            self.take(fact)
        if not self._ended:
            self._observer.want(self, ("memory", "work", "health", "patterns", "peers"))
            self._observer.followers.append(self.take)
        self._flush()

    @property
    def ended(self) -> bool:
        """Whether it writes no more."""
        return self._ended

    def publish(self, at: float) -> bool:
        """Have the system looked at, and what was heard written; the publisher's thread only."""
        del at
        with self._observer.lock:
            if not self._ended:
                self._observer.look()
                self._flush()
        return True

    def take(self, fact: Event) -> None:
        """Take one fact; the observer's lock is held."""
        if self._ended or os.getpid() != self._process:
            return
        if isinstance(fact, SystemEnded):
            self._catch_up()
        if isinstance(fact, REPEATING):
            key = subject(fact)
            if repeats(fact, self._said.get(key)):
                self._unsaid[key] = fact
                return
            self._unsaid.pop(key, None)
            self._said[key] = fact
        self._write(fact)
        if isinstance(fact, SystemEnded):
            self._end()

    def close(self) -> None:
        """Look a last time, write the end, and follow no more; any thread."""
        if os.getpid() != self._process:
            return
        with self._observer.lock:
            if not self._ended:
                self._observer.look()
            if not self._ended:
                self._catch_up()
                self._end()

    def _catch_up(self) -> None:
        """Write when each was seen last."""
        unsaid, self._unsaid = self._unsaid, {}
        for fact in sorted(unsaid.values(), key=lambda fact: fact.at):
            self._write(fact)

    def _write(self, fact: Event) -> None:
        line = encode(fact)
        end = 64 + (self._limit // _KEPT if isinstance(fact, SAMPLE_TYPES) else 0)
        if self._written + len(line) > self._limit - end or self.failure is not None:
            self.dropped += 1
            return
        self._count += 1
        self._put(line)

    def _put(self, line: bytes) -> None:
        self._written += len(line)
        self._waiting.append(line)

    def _flush(self) -> None:
        data, self._waiting = b"".join(self._waiting), []
        try:
            while data and self.failure is None:
                data = data[self._file.write(data) :]
        except OSError as error:  # the disk is full: the views go on
            self.failure = error
            warn_of(error, f"{self._file.name} can no longer be written")

    def _end(self) -> None:
        self._ended = True
        end = {"end": {"facts": self._count, "dropped": self.dropped}}
        self._put(msgspec.json.encode(end) + b"\n")
        self._flush()
        self._file.close()
        with suppress(ValueError):
            self._observer.followers.remove(self.take)
        atexit.unregister(self.close)


def record(
    lab: Lab,
    path: str | Path,
    *,
    rate_hz: float = DEFAULT_HZ,
    limit_bytes: int = LIMIT_BYTES,
) -> Recording:
    """Write what can be seen of a system into a file, until it closes or the recording is closed.

    `with views.record(lab, "session.jsonl"):` records a block. What was seen before stands at the
    beginning. `Recording.open(path)` reads it, also while it grows, and every view draws it:
    `views.tree(Recording.open(path))`.

    Parameters:
        lab: the system.
        path: of the file; one that is there is replaced, and who still has it open keeps it. Only
            this user can read it (mode 0600), for it has the text of cells and what code printed.
        rate_hz: how often the system is looked at, at most 30.
        limit_bytes: how large the file may become. Beyond it samples are left out, then all else;
            `dropped` counts that, and the end of the file says it.

    Raises:
        InvalidArgument: the limit is below 16 KiB.
        RecordingError: the file cannot be written.
        ValueError: the rate is not positive.
    """
    check_rate(rate_hz)
    if limit_bytes < LEAST_BYTES:
        raise InvalidArgument(f"a recording has at least {size(LEAST_BYTES)}, not {limit_bytes} B")
    try:
        recorder = Recorder(observer_of(lab), Path(path), lab.name, limit_bytes)
    except OSError as error:
        raise RecordingError(f"{path} cannot be written: {error}") from error
    if recorder.failure is not None:
        recorder.close()
        raise RecordingError(f"{path} cannot be written: {recorder.failure}")
    try:
        if not recorder.ended:
            PUBLISHER.add(recorder, rate_hz=rate_hz)
        return Recording(path, recorder)
    except BaseException:
        recorder.close()
        raise


def retell(scene: Scene) -> Iterator[Event]:
    """Yield facts that make of an empty scene one that is drawn as this one."""
    yield from (fact for _, fact in scene.facts)
    for device, (generation, blocks) in scene.lost.items():
        used = sum(block.nbytes for block in blocks)
        at = scene.memory[device].at
        yield MemorySampled(
            at=at,
            device=device,
            generation=generation,
            used_bytes=used,
            total_bytes=None,
            blocks=blocks,
        )
    yield from scene.memory.values()
    for device, run in groupby(scene.slices, key=lambda one: one[1]):
        done = tuple(one for _, _, one in run)
        cells = scene.cells_of(device, done)
        yield WorkTraced(
            at=scene.at, device=device, generation=0, done=done, running=(), cells=cells
        )
    for device, running in scene.running.items():
        dropped = scene.untraced.get(device, 0)
        generation = scene.generation_of_work(device)
        yield WorkTraced(
            at=scene.at,
            device=device,
            generation=generation,
            done=(),
            running=running,
            dropped=dropped,
            cells=scene.cells_of(device, running),
        )
    for readings in scene.health.values():
        yield from readings
    yield from beside_work(scene)
    yield from beside_devices(scene)
    if scene.tree is not None:
        yield TreeSampled(at=scene.at, root=scene.tree)
    if scene.closed:
        yield SystemEnded(at=scene.at, name=scene.tree.name if scene.tree is not None else "")


def _line(fact: Event) -> Line:
    """Return a fact in words."""
    what = type(fact).__name__
    device = getattr(fact, "device", "")
    generation = getattr(fact, "generation", 0)
    mark = "fault" if _failed(fact) else "turn" if isinstance(fact, facts.GenerationChanged) else ""
    return Line(fact.at, device, generation, f"{what}({_told(fact)})", _outcome(fact), mark)


def _failed(fact: Event) -> bool:
    if isinstance(fact, ActorStopped):
        return fact.cause is not None
    return isinstance(fact, FAULTS) and not is_asked(fact)


def _told(fact: Event) -> str:
    if isinstance(fact, TreeSampled):
        return f"{sum(1 for _ in fact.root.walk())} actors"
    if isinstance(fact, MemorySampled):
        return f"{len(fact.blocks) + fact.unlisted} blocks, {size(fact.used_bytes)}"
    if isinstance(fact, WorkTraced):
        return f"{len(fact.done)} done, {len(fact.running)} running"
    if isinstance(fact, HealthSampled):
        return f"{fact.source}: {len(fact.readings)} readings"
    if isinstance(fact, WorldsSampled):
        return ", ".join(f"{one.name} {one.state}, epoch {one.epoch}" for one in fact.worlds)
    return _told_beside(fact)


def _told_beside(fact: Event) -> str:
    if isinstance(fact, PatternsSampled):
        return ", ".join(f"{one.name} {one.answered} answered" for one in fact.patterns)
    if isinstance(fact, PeersSampled):
        measured = sum(1 for one in fact.links if one.gb_per_s)
        return f"{len(fact.links)} links, {measured} measured"
    return _told_by_fields(fact)


def _told_by_fields(fact: Event) -> str:
    left_out = {"at", "device", "generation", "cause", "error"}
    fields = msgspec.structs.asdict(fact)
    return ", ".join(
        f"{name}={value}" for name, value in fields.items() if name not in left_out and value
    )


def _outcome(fact: Event) -> str:
    cause = getattr(fact, "cause", None) or getattr(fact, "error", None)
    return str(cause) if cause is not None else ""
