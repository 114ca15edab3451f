"""One thing the doctor looked at."""

from typing import Literal

import msgspec

Topic = Literal["machine", "core", "gpu", "cuda", "jupyter"]
State = Literal["ok", "limited", "missing"]
Backend = Literal["host", "cuda"]

HOST_AND_CUDA: tuple[Backend, ...] = ("host", "cuda")
CUDA: tuple[Backend, ...] = ("cuda",)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the machine, its state, and what to do when it is not `ok`.

    Attributes:
        topic: the part of the report it stands in.
        name: what was looked at, as `cupy` or `gpu0`; unique in a report, never translated.
        state: `ok`; `limited` when it works less well than it could; `missing` when it does not.
        found: what is there, in words and units for people.
        size_bytes: the same as a number, where it is an amount of memory.
        disables: what does not work for the lack of it; empty when `ok`.
        command: the shell command that installs or mends it; empty where no command can.
        blocks: the backends that cannot run because of it.
    """

    topic: Topic
    name: str
    state: State
    found: str
    size_bytes: int | None = None
    disables: str = ""
    command: str = ""
    blocks: tuple[Backend, ...] = ()
