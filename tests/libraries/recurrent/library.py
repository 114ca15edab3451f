"""Handles of states and caches, as a library brings them; for tests alone."""

from typing import Any, ClassVar, NamedTuple, Protocol

from accel_lab.compute.device import Device, device_first
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import HANDLE, Operation, PartialSpec, Spec
from accel_lab.errors import AccelError, Directive, InvalidArgument, LibraryError
from accel_lab.libraries.authoring.dtype_sets import REAL_SINGLE_AND_DOUBLE
from accel_lab.libraries.authoring.function import function
from accel_lab.libraries.authoring.operand import describe
from accel_lab.libraries.authoring.options import Options


class RnnState:
    """The weights and the hidden state of a recurrent network."""


class KVCache:
    """Rows that grow with each token."""


class Overflow(AccelError):
    """The state is too large; its library is well."""

    directive = Directive.RESUME


class MakeState(Operation[Handle[RnnState]], frozen=True, array_like=True, eq=False, tag=910):
    """Make a state of 0 for `weights`; `log` is a file that tells of its end."""

    library: ClassVar[str] = "recurrent"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    weights: AccelRef
    _: Options
    log: str = ""

    def infer(self) -> None:
        """Refuse weights that are not square."""
        shape = self.weights.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            raise InvalidArgument(f"MakeState takes square weights, not {describe(self.weights)}")


class MakeCache(Operation[Handle[KVCache]], frozen=True, array_like=True, eq=False, tag=911):
    """Make an empty cache of rows of `width` numbers."""

    library: ClassVar[str] = "recurrent"
    dtypes: ClassVar = frozenset({""})
    width: int
    log: str = ""
    fails: bool = False


class StateParts(NamedTuple):
    """A state, and what is in it."""

    h: AccelRef
    state: Handle[RnnState]
    cache: Handle[KVCache] | None


class MakeBoth(Operation[StateParts], frozen=True, array_like=True, eq=False, tag=912):
    """Make a state that begins as `h`, a copy of that, and on request a cache."""

    library: ClassVar[str] = "recurrent"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    asked_by: ClassVar = {"cache": "cached"}
    weights: AccelRef
    h: AccelRef
    _: Options
    cached: bool = False
    log: str = ""

    def infer(self) -> tuple[Spec, Spec, Spec | None]:
        """Return the shape of `h`; the handles are known anyway."""
        return Spec(self.h.shape, self.h.dtype), HANDLE, HANDLE if self.cached else None


class Step(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=913):
    """Advance a state by an input, h = tanh(weights @ h + x), and return h."""

    library: ClassVar[str] = "recurrent"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    written: ClassVar[str] = "state"
    state: Handle[RnnState]
    x: AccelRef

    def infer(self) -> Spec:
        """Return the shape of the input."""
        return Spec(self.x.shape, self.x.dtype)


class Append(Operation[None], frozen=True, array_like=True, eq=False, tag=914):
    """Append rows to a cache."""

    library: ClassVar[str] = "recurrent"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    written: ClassVar[str] = "cache"
    cache: Handle[KVCache]
    rows: AccelRef
    slow: bool = False


class ReadCache(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=915):
    """Return the rows of a cache; only the device knows how many."""

    library: ClassVar[str] = "recurrent"
    dtypes: ClassVar = frozenset({""})
    cache: Handle[KVCache]
    dtype: str = "float64"

    def infer(self) -> PartialSpec:
        """Return rows of unknown number and width."""
        return PartialSpec((None, None), self.dtype)

    @property
    def dtype_key(self) -> str:
        """Nothing: rows have what dtype they have."""
        return ""


class Blend(Operation[AccelRef], frozen=True, array_like=True, eq=False, tag=916):
    """Return the sum of what is in several states, on top of another, in the shape of `like`."""

    library: ClassVar[str] = "recurrent"
    dtypes: ClassVar = REAL_SINGLE_AND_DOUBLE
    states: tuple[Handle[RnnState], ...]
    like: AccelRef
    first: Handle[RnnState] | None = None

    def infer(self) -> Spec:
        """Return the shape of `like`."""
        return Spec(self.like.shape, self.like.dtype)


class Upset(Operation[None], frozen=True, array_like=True, eq=False, tag=917):
    """Change a state and fail: with its library, or, when `judged`, by a verdict of the device."""

    library: ClassVar[str] = "recurrent"
    dtypes: ClassVar = frozenset({""})
    written: ClassVar[str] = "state"
    state: Handle[RnnState]
    judged: bool = False


step, append, read_cache, upset = (
    function(Step),
    function(Append),
    function(ReadCache),
    function(Upset),
)
make_state, make_both = function(MakeState), function(MakeBoth)


def make_cache(
    device: Device, width: int, log: str = "", *, fails: bool = False
) -> Handle[KVCache]:
    """Make an empty cache on a device."""
    return device_first(device).ask(MakeCache(width, log, fails))


def blend(
    *states: Handle[RnnState], like: AccelRef, first: Handle[RnnState] | None = None
) -> AccelRef:
    """Return the sum of what is in states."""
    return like.device.ask(Blend(states, like, first))


class RecurrentLibrary(Protocol):
    """What a backend provides."""

    def make_state(self, weights: Any, h: Any, log: str) -> Any:
        """Return a state, which closes itself into `log`."""

    def make_cache(self, width: int, log: str) -> Any:
        """Return a cache."""

    def step(self, state: Any, x: Any, out: Any) -> None:
        """Advance a state, and write what is in it."""

    def append(self, cache: Any, rows: Any) -> None:
        """Append rows."""

    def rows(self, cache: Any, dtype: str) -> Any:
        """Return all rows."""

    def add(self, states: list[Any], out: Any) -> None:
        """Write the sum of what is in states."""

    def overflow(self, state: Any) -> Any:
        """Change a state, and return a status that says so."""

    def wait(self, seconds: float) -> None:
        """Block for a while, as a vendor's call may."""


class RecurrentActor(LibraryActor):
    """Owns the stream of one context."""

    library = "recurrent"
    lib: RecurrentLibrary

    @handles(MakeState)
    def make_state(self, m: MakeState, launch: Launch) -> None:
        """Make one."""
        launch.keep(self.lib.make_state(launch.read(m.weights), None, m.log))

    @handles(MakeCache)
    def make_cache(self, m: MakeCache, launch: Launch) -> None:
        """Make one, or fail behind that."""
        launch.keep(self.lib.make_cache(m.width, m.log))
        if m.fails:
            raise Overflow("it fails behind what it has kept")

    @handles(MakeBoth)
    def make_both(self, m: MakeBoth, launch: Launch) -> None:
        """Make a state, a copy of what is in it, and maybe a cache."""
        h = launch.read(m.h)
        launch.empties().h[...] = h
        launch.keep(self.lib.make_state(launch.read(m.weights), h, m.log), result="state")
        if m.cached:
            launch.keep(self.lib.make_cache(h.size, m.log), result="cache")

    @handles(Step)
    def step(self, m: Step, launch: Launch) -> None:
        """Advance."""
        x, state = launch.read(m.x), launch.write(m.state)
        self.lib.step(state, x, launch.empty())

    @handles(Append)
    def append(self, m: Append, launch: Launch) -> None:
        """Append, at once or beside the dispatcher."""
        rows, cache = launch.read(m.rows), launch.write(m.cache)
        if not m.slow:
            self.lib.append(cache, rows)
            return

        def work(_: Any) -> None:
            self.lib.wait(0.5)
            self.lib.append(cache, rows)

        launch.blocking(work)

    @handles(ReadCache)
    def read_cache(self, m: ReadCache, launch: Launch) -> None:
        """Copy."""
        launch.take(self.lib.rows(launch.read(m.cache), m.dtype))

    @handles(Blend)
    def blend(self, m: Blend, launch: Launch) -> None:
        """Add."""
        states = m.states if m.first is None else (m.first, *m.states)
        self.lib.add([launch.read(one) for one in states], launch.empty())

    @handles(Upset)
    def upset(self, m: Upset, launch: Launch) -> None:
        """Change it and fail."""
        status = self.lib.overflow(launch.write(m.state))
        if not m.judged:
            raise LibraryError("it is upset", library=self.library, name="UPSET")
        launch.check(status, lambda found: Overflow("too large") if found[0] else None)
