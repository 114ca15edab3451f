"""The execution of a cell in a context: what is sent for it, and what it did there."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from accel_lab.compute.cells.mutable_parts import Way
from accel_lab.compute.execution.cost_meter import Cost, Span


class Cell(NamedTuple):
    """A cell as it is sent.

    Attributes:
        filename: names it in tracebacks.
        given: what the notebook's names stand for that it uses.
        modules: "name=module" of each module that the notebook knows by a name.
        kept: arrays that the cells have made themselves, for names that are not bound here.
        tensors: what kind of tensor such an array was, if it was one.
        returned: which of the given go back when the cell has changed them in place, each with the
            ways to the notebook's own arrays inside it.
        gone: names to forget: the notebook has them no more, or has given them another value that
            the cell does not use.
        only: the names of what nothing else in the notebook stands for: what the cell deletes or
            binds anew of these ends there at once, as it would here.
        generators: states of the notebook's global random generators, to draw from meanwhile.
        number: tells it from the notebook's others.
        result: a name for what its last line shows, where that stays here and has none; empty if
            the notebook does not keep what cells show.
    """

    source: str
    filename: str
    given: dict[str, Any]
    modules: list[str]
    kept: dict[str, Any]
    tensors: dict[str, str]
    returned: dict[str, frozenset[Way]]
    gone: list[str]
    only: list[str]
    generators: dict[str, bytes]
    number: int
    result: str = ""


class Piece(NamedTuple):
    """Names that a cell has defined, which can be defined again by running its text in part."""

    source: str
    filename: str
    names: frozenset[str]


@dataclass(frozen=True)
class Resident:
    """An object that stays in the context, as people see it.

    Attributes:
        name: under which the cells know it.
        serial: tells it from what had the name before.
        kind: its type.
        text: its repr, cut.
        nbytes: of the memory of the device that it is seen to hold.
        callable: whether it can be called.
    """

    name: str
    serial: int
    kind: str
    text: str
    nbytes: int
    callable: bool = False


class Result(NamedTuple):
    """What the last line of a cell has shown, for `_` and `Out`.

    Attributes:
        name: by which the cells know it; empty if they do not.
        array: it, if it is an array.
        copy: it, if it is plain data and has no name.
        resident: it, if it is anything else.
    """

    name: str
    array: Any = None
    copy: bytes | None = None
    resident: Resident | None = None


@dataclass
class Ran:
    """What a cell did: the arrays and objects that it bound to names.

    `generation` is that of the context in which it ran; `cost` is there if it was measured. `same`
    has, for an array that the notebook knows by another name as well, that name, and so for what it
    has given. `plain` has a copy of each object of plain data that is new or has changed, `renewed`
    says what those look like that have changed. `returned` has what the notebook gave and the cell
    has changed, `changed` the parts that it has changed of what goes back in parts; `stays` tells
    those that cannot go back, `beyond` those that have too many parts to compare. `generators` has
    what the notebook's global generators draw from now. `shown_bytes` is what it displayed
    meanwhile, `stopped` where an interrupt has ended it. `imported` lists the names of modules that
    are there, whoever has bound them. `value` is what was returned by an object
    that was called in place of a cell, `result` what the cell's last line has shown.
    """

    generation: int
    arrays: dict[str, Any] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    residents: dict[str, Resident] = field(default_factory=dict)
    renewed: dict[str, Resident] = field(default_factory=dict)
    plain: dict[str, bytes] = field(default_factory=dict)
    returned: dict[str, bytes] = field(default_factory=dict)
    changed: dict[str, bytes] = field(default_factory=dict)
    stays: dict[str, str] = field(default_factory=dict)
    beyond: dict[str, str] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    imported: list[str] = field(default_factory=list)
    generators: dict[str, bytes] = field(default_factory=dict)
    shown_bytes: int = 0
    stopped: str = ""
    cost: Cost | None = None
    value: Any = None
    result: Result | None = None


@dataclass(frozen=True)
class Timed:
    """How long each run of a cell took, which repeated it `number` times."""

    number: int
    runs: list[Span]
