"""The lines of a feed, each one JSON value.

First who speaks (`Speaker`), then `Topic` lines, each of which says whose the lines after it are:
facts, as `scene/fact_lines.py` writes them, and pieces of the journal, as `journal.py` takes
them. `Loss` lines count the samples that this reader was too slow for.
"""

import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from accel_lab.views.scene.fact_lines import sendable
from accel_lab.views.scene.process_gauge import program

SCHEMA = 2
"""The version of the lines; since 2 they tell the journal. A reader refuses a later one by name."""


class Speaker(msgspec.Struct, frozen=True, kw_only=True):
    """The first line: which process speaks.

    Attributes:
        feed: the schema of what follows.
        pid: of the process.
        version: of accel_lab.
        program: the notebook, or the script.
        folder: the process's working directory.
    """

    feed: int
    pid: int
    version: str
    program: str
    folder: str


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A line that says of which system the facts after it tell.

    Attributes:
        system: its number in this process.
        name: what it is called.
        opened: when, wall seconds.
        journal: whether it keeps one.
        unread: why its journal ends before the system did, as a sentence; empty while it does not.
    """

    system: int
    name: str
    opened: float
    journal: bool = False
    unread: str = ""


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """A line that says how many samples this reader has lost so far."""

    lost: int


def line_of(said: msgspec.Struct) -> bytes:
    """Return it as it is sent."""
    try:
        return msgspec.json.encode(said) + b"\n"
    except UnicodeEncodeError:  # half of a character, as in the name of a system
        return msgspec.json.encode(sendable(msgspec.to_builtins(said))) + b"\n"


def speaker() -> Speaker:
    """Return this process as it speaks first."""
    try:
        release = version("accel-lab")
    except PackageNotFoundError:  # a source folder on the path
        release = ""
    return Speaker(
        feed=SCHEMA, pid=os.getpid(), version=release, program=program(), folder=folder()
    )


def folder() -> str:
    """Return this process's working directory; empty if that is gone."""
    try:
        return str(sendable(str(Path.cwd())))
    except FileNotFoundError:
        return ""
