"""Which message ended a context, as rerunning it has shown."""

from collections.abc import Iterator
from typing import Any

import msgspec

from accel_lab.display.buffer_number import short
from accel_lab.display.counts import counted
from accel_lab.display.summary import as_html, as_text
from accel_lab.errors import ContextLost
from accel_lab.journal.entries.entry import Entry, describe


class Involved(msgspec.Struct, frozen=True):
    """An operand of the message that did it.

    Attributes:
        name: the field that names it, as `a` or `refs[1]`.
        id: its number when it was recorded.
        shape: None when it is not known, and of what is no array.
        dtype: empty when it is not known; of what is no array, its kind.
        held_by: the names of the notebook, or of the script, that lead to its handle.
    """

    name: str
    id: int
    shape: tuple[int, ...] | None
    dtype: str
    held_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = f" {self.dtype}" if self.dtype else ""
        what += f"{list(self.shape)}" if self.shape is not None else ""
        if self.held_by:
            return f"{self.name} = {', '.join(self.held_by)} (#{short(self.id)}{what})"
        return f"{self.name} = #{short(self.id)}{what}"


class Explanation(msgspec.Struct, frozen=True, eq=False):
    """What ended a context.

    Attributes:
        device: its name.
        generation: of the context that was lost.
        cause: what was known of the loss when it happened; `code` and `name` are the driver's, or
            the signal's name.
        in_flight: how many messages had no answer then.
        culprit: the message that ended the spare context, too; None when none did.
        operands: its operands.
        kernel: the name of the kernel that it launched, if it launched one.
        error: how the spare context ended.
        messages: how many messages were run for this, one at a time.
        not_run: messages that could not be run again, each with the reason.
        seconds: how long it took.
        memcheck: what compute-sanitizer says of it; empty where it is not installed or not asked.
        untried: how many of those in flight could not be run again.
        gone: how many of these have left the journal.
        fields: what else the error of the loss had, by name, as `recent`.
    """

    device: str
    generation: int
    cause: str
    code: int
    name: str
    in_flight: int
    culprit: Entry | None
    operands: tuple[Involved, ...]
    kernel: str
    error: ContextLost | None
    messages: int
    not_run: tuple[tuple[Entry, str], ...]
    seconds: float
    memcheck: str = ""
    untried: int = 0
    gone: int = 0
    fields: dict[str, Any] = {}

    @property
    def cell(self) -> int | None:
        """The notebook cell that sent the message; None for a plain program, or without one."""
        return None if self.culprit is None else self.culprit.cell

    def with_memcheck(self, told: str) -> "Explanation":
        """Return the same with what compute-sanitizer says."""
        return msgspec.structs.replace(self, memcheck=told)

    def lines(self) -> Iterator[tuple[str, str]]:
        """Give the explanation as (what, which)."""
        named = f"{self.name} ({self.code})" if self.code else self.name
        yield "lost", f"{self.cause or 'for a reason that was not recorded'}"
        if named:
            yield "error", named
        ran = counted(self.messages, "message")
        if self.culprit is None:
            yield "culprit", self._nobody()
        else:
            sender = "a plain program" if self.cell is None else f"cell {self.cell}"
            yield "culprit", describe(self.culprit)
            where = f"request {self.culprit.seq}, entry {self.culprit.number} of the journal"
            yield "which is", f"{where}, sent by {sender}"
            if self.kernel:
                yield "kernel", self.kernel
            for operand in self.operands:
                yield "operand", str(operand)
            yield "run again", f"it ended a spare context, too: {self.error}"
        for line in self.memcheck.splitlines():
            yield "memcheck", line
        yield "by", f"running {ran} again, one at a time, in {self.seconds:.2f} s"
        for entry, why in self.not_run:
            yield "not run", f"entry {entry.number}, {describe(entry)}: {why}"

    def _nobody(self) -> str:
        if not self.in_flight:
            return "no message was in flight: it came from outside, as a kill does"
        tried = self.in_flight - self.untried
        text = f"{_messages(tried)} in flight did no harm in a spare context"
        if not self.untried and not self.not_run:
            return (
                f"the fault did not show again: {text}, so it came from outside, as a kill does, "
                "or it does not happen every time"
            )
        text = f"not found: {text}" if tried > 0 else "not found: nothing in flight could be run"
        if self.gone:
            left = f"{_messages(self.gone)} {'has' if self.gone == 1 else 'have'} left the journal"
            text += f"; {left}; more stay with System(journal_bytes=…)"
        return f"{text}; what could not be run again stands below" if self.not_run else text

    @property
    def title(self) -> str:
        """What happened, in a line."""
        return f"{self.device} lost its context of generation {self.generation}"

    def __str__(self) -> str:
        return as_text(self.title, self.lines(), 11)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return as_html(self.title, self.lines())


def _messages(count: int) -> str:
    return "one message" if count == 1 else f"{count} messages"
