"""`%%gpuprofile`: which messages a cell has sent, and how long the devices ran each.

The cell runs in the notebook, as under `%%time`: messages are sent from there, and it is they that
the runtime marks on the devices' clocks. A `%%gpu` cell is one message, and so is a call of
`gpu.run`; which kernels such code launches only the driver knows, and tools as `nsys` ask it.
"""

import ast
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Self

from accel_lab.actor.events import Event
from accel_lab.compute.events.samples import Slice, WorkTraced
from accel_lab.display.table import WIDTH, as_html, as_text
from accel_lab.system import System
from accel_lab.views.past.still import Still
from accel_lab.views.scene.fault_mark import mark_of
from accel_lab.views.scene.observer import EVERY_S, observer_of
from accel_lab.views.timeline import TimelineView, duration, timeline

LIMIT_S = 10.0
"""How long a context may take to begin to trace, and to tell of the last work."""
ANSWERS = 3
"""After so many answers a context has told of all that it is going to."""
POLL_S = 0.005
_COLUMNS = ("Message", "On", "Count", "Total", "Share", "Longest")
_NUMBERS = {"Count", "Total", "Share", "Longest"}


@dataclass(frozen=True)
class Kind:
    """The messages of one kind on one stream; times are of the device's clock, in seconds."""

    name: str
    device: str
    stream: str
    count: int
    total_s: float
    longest_s: float


class Profile:
    """What the messages of a cell took.

    Attributes:
        kinds: the kinds of messages, the most time first.
        total_s: of all of them; streams that work at the same time count both.
        wall_s: from the begin of the cell to the last answer, in this process.
        unseen: how many of its messages have left no trace: they were taken back, were refused, or
            came faster than can be kept.
    """

    def __init__(self, works: list[tuple[str, Slice]], wall_s: float, unseen: int) -> None:
        self.wall_s = wall_s
        self.unseen = unseen
        times: dict[tuple[str, str, str], list[float]] = {}
        for device, one in works:
            took = 0.0 if one.end is None else max(0.0, one.end - one.start)
            times.setdefault((one.name, device, one.stream), []).append(took)
        found = [Kind(*key, len(took), sum(took), max(took)) for key, took in times.items()]
        self.kinds = sorted(found, key=lambda kind: -kind.total_s)
        self.total_s = sum(kind.total_s for kind in found)

    def __repr__(self) -> str:
        if not self.kinds:
            return self._title()
        return "\n".join((self._title(), *as_text(_COLUMNS, list(self._rows()), _NUMBERS, WIDTH)))

    def _repr_html_(self) -> str:
        return as_html(self._title(), _COLUMNS, list(self._rows()))

    def _title(self) -> str:
        count = sum(kind.count for kind in self.kinds)
        unseen = f", {self.unseen:,} more not seen" if self.unseen else ""
        if not count:
            return f"no messages were seen in {duration(self.wall_s)}{unseen}"
        plural = "" if count == 1 else "s"
        return (
            f"{count:,} message{plural}: {duration(self.total_s)} of work "
            f"in {duration(self.wall_s)}{unseen}"
        )

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for kind in self.kinds:
            share = f"{100 * kind.total_s / self.total_s:.1f} %" if self.total_s else ""
            yield (
                kind.name,
                f"{kind.device}/{kind.stream}",
                f"{kind.count:,}",
                duration(kind.total_s),
                share,
                duration(kind.longest_s),
            )


class Watch:
    """Sees what the devices of a system work at, as a context manager.

    Attributes:
        works: of the messages that were sent meanwhile, by whomever: (device, slice).
        unseen: how many have left no trace.
    """

    def __init__(self, lab: System) -> None:
        self.lab = lab
        self.works: list[tuple[str, Slice]] = []
        self.unseen = 0
        self._observer = observer_of(lab)
        self._facts: list[Event] = []
        self._closely = ExitStack()
        self._answers: Counter[str] = Counter()
        self._sent: dict[str, range] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="accel_lab profile", daemon=True)

    def __enter__(self) -> Self:
        """Have the devices trace; blocks until those that run do. Undoes it if that is ended."""
        try:
            self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def _begin(self) -> None:
        self._closely.enter_context(self.lab.closely())
        self._observer.want(self, {"work"})
        self._look()  # takes what was answered to others, before it is listened to
        self._observer.followers.append(self._saw)
        self._thread.start()
        asked = [device for device in self.lab.devices if device.state == "running"]
        self._wait(lambda: all(self._answers[device.name] for device in asked))
        with self._observer.lock:
            self.works.clear()
            self._facts.clear()
        first = {device.name: device.last_number + 1 for device in self.lab.devices}
        self._sent = {name: range(number, number) for name, number in first.items()}

    def wait(self) -> None:
        """Wait for the answers to all that was sent, however long that takes."""
        for device in self.lab.devices:
            first = self._sent[device.name].start
            self._sent[device.name] = sent = range(first, device.last_number + 1)
            while sent and (oldest := device.first_unanswered) is not None and oldest < sent.stop:
                time.sleep(POLL_S)

    def settle(self) -> None:
        """Wait for the traces of what was answered."""
        told = self._answers.copy()
        self._wait(
            lambda: all(
                self._missing(device.name) == 0
                or device.state != "running"
                or self._answers[device.name] - told[device.name] >= ANSWERS
                for device in self.lab.devices
            )
        )
        with self._observer.lock:
            self.works[:] = [(name, one) for name, one in self.works if one.seq in self._sent[name]]
        self.unseen = sum(self._missing(device.name) for device in self.lab.devices)

    def still(self, of: str) -> Still:
        """Return what was seen, as the source of a timeline."""
        done: dict[str, list[Slice]] = {}
        for device, one in self.works:
            done.setdefault(device, []).append(one)
        facts = [
            WorkTraced(device=device, generation=0, done=tuple(slices), running=())
            for device, slices in done.items()
        ]
        return Still(self.lab.name, of, [*facts, *self._facts])

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        """Undo as much as was begun."""
        self._ended.set()
        try:
            if self._thread.is_alive():
                self._thread.join()
        finally:
            self._closely.close()
            with self._observer.lock, suppress(ValueError):
                self._observer.followers.remove(self._saw)

    def _missing(self, device: str) -> int:
        sent = self._sent[device]
        seen = {one.seq for name, one in list(self.works) if name == device and one.seq in sent}
        return len(sent) - len(seen)

    def _wait(self, is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + LIMIT_S
        while not is_so() and time.monotonic() < until:
            time.sleep(POLL_S)

    def _look(self) -> None:
        with self._observer.lock:
            self._observer.look()

    def _look_on(self) -> None:
        while not self._ended.wait(EVERY_S["work"]):
            self._look()

    def _saw(self, fact: Event) -> None:
        """Take a fact; whoever looks calls it."""
        if isinstance(fact, WorkTraced):
            self._answers[fact.device] += 1
            self.works.extend((fact.device, one) for one in fact.done)
        elif mark_of(fact) is not None:
            self._facts.append(fact)


def profile(
    labs: list[System], run: Callable[[], Any], of: str
) -> tuple[Any, Profile, list[TimelineView]]:
    """Call `run`, and see what the messages take that are sent meanwhile; blocks for all of them.

    Messages of other threads are among them. Returns what `run` does, the profile, and a timeline
    of each system that has worked.

    Parameters:
        of: names the cell on the timelines.

    Raises:
        Exception: what `run` raises.
    """
    with ExitStack() as stack:
        watches = [stack.enter_context(Watch(lab)) for lab in labs]
        began = time.perf_counter()
        value = run()
        for watch in watches:
            watch.wait()
        wall_s = time.perf_counter() - began
        for watch in watches:
            watch.settle()
    works = [work for watch in watches for work in watch.works]
    unseen = sum(watch.unseen for watch in watches)
    timelines = [timeline(watch.still(of)) for watch in watches if watch.works]
    return value, Profile(works, wall_s, unseen), timelines


def execute(shell: Any, source: str) -> Any:
    """Run a cell's text in the notebook of an IPython; return the value of its last line.

    Raises:
        Exception: what it raises. SyntaxError for an `await` outside a function, too.
    """
    # Below the line of the magic, and the empty ones that IPython takes away: a traceback has the
    # lines of the cell.
    above = 1 + source[: len(source) - len(source.lstrip())].count("\n")
    text = "\n" * above + shell.transform_cell(source)
    name = shell.compile.cache(text, shell.displayhook.prompt_count)
    tree = shell.transform_ast(shell.compile.ast_parse(text, name))
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = shell.compile(ast.Expression(tree.body.pop().value), name, "eval")
    exec(shell.compile(tree, name, "exec"), shell.user_ns)  # noqa: S102 - that is what a cell is for
    return None if last is None else eval(last, shell.user_ns)  # noqa: S307 - as above
