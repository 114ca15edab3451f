"""One rank of a function that all ranks run: what is around the call, in the rank's context.

The ranks find each other through a file, and not through a port on which one listens. A script of
torchrun's calls `init_process_group` itself, which is done already: it is then done by us, or, when
the script has destroyed the group and makes another, through the same folder.

Runs in a context's process.
"""

import math
import os
import runpy
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from accel_lab.compute.machine.private_folder import is_private
from accel_lab.compute.user_code.interrupts import INTERRUPTS

FAILED = "failed-"
"""The beginning of the name of the file that says when a rank's function has raised."""
STOP = "stop"
"""The file whose coming ends what waits for other ranks."""
_LOOK_S = 0.05
_LEFT = "left-"
_READY = "_accel_lab_ready"


class Rank(NamedTuple):
    """Which rank this is, and where it finds the others.

    Attributes:
        folder: where the ranks' files are.
        backend: of `torch.distributed`; empty for a run without.
        timeout_s: how long one of its operations may wait.
        is_apart: whether that folder is on another machine, and has to be made on this one.
    """

    rank: int
    size: int
    folder: str
    backend: str
    timeout_s: float
    is_apart: bool = False


def prepare(rank: Rank) -> None:
    """Get ready for a function that may name PyTorch's functions before it is called."""
    if rank.backend:
        _patch(import_module("torch.distributed.distributed_c10d"))


def call_as(
    rank: Rank, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a function as one rank; the process group is there before, and gone behind it."""
    if rank.is_apart:
        with _folder(rank) as folder:
            own = rank._replace(folder=folder, is_apart=False)
            return call_as(own, function, args, kwargs)
    with _environment(rank), _process_group(rank):
        try:
            return function(*args, **kwargs)
        except BaseException:
            _note_failure(rank)  # before the group's end makes the others fail
            raise


@contextmanager
def _folder(rank: Rank) -> Iterator[str]:
    """Have the ranks' folder on this machine; the last rank that leaves it takes it away."""
    folder = Path(tempfile.gettempdir(), Path(rank.folder).name)
    folder.mkdir(0o700, exist_ok=True)
    if not is_private(folder):
        raise PermissionError(f"others can write to {folder}")
    try:
        yield str(folder)
    finally:
        (folder / f"{_LEFT}{rank.rank}").touch()
        if len(list(folder.glob(f"{_LEFT}*"))) == rank.size:
            shutil.rmtree(folder, ignore_errors=True)


def run_file(path: str, arguments: tuple[str, ...]) -> None:
    """Run a Python file as a program, with these arguments."""
    before, sys.argv = sys.argv, [path, *arguments]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            raise RuntimeError(f"{path} ended with {error.code!r}") from error
    finally:
        sys.argv = before


def _note_failure(rank: Rank) -> None:
    with suppress(OSError):
        Path(rank.folder, f"{FAILED}{rank.rank}").write_text(str(time.monotonic()))


def failed_at(folder: str, rank: int) -> float:
    """Return when a rank's function raised, by the clock of the machine; never is infinite."""
    try:
        return float(Path(folder, f"{FAILED}{rank}").read_text())
    except (OSError, ValueError):
        return math.inf


@contextmanager
def _environment(rank: Rank) -> Iterator[None]:
    """Set the variables that torchrun sets, and put them back."""
    number, size = str(rank.rank), str(rank.size)
    variables = {
        "RANK": number,
        "WORLD_SIZE": size,
        "LOCAL_RANK": _local_rank(rank),
        "LOCAL_WORLD_SIZE": size,
        "GROUP_RANK": "0",
        "ROLE_RANK": number,
        "ROLE_WORLD_SIZE": size,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",  # nobody listens: see `_rendezvous`
        "TORCHELASTIC_RUN_ID": Path(rank.folder).name,
    }
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _local_rank(rank: Rank) -> str:
    """Return the number of this context's card, as this process counts; of the rank on the host."""
    if rank.backend != "nccl":
        return str(rank.rank)
    return str(import_module("torch").cuda.current_device())


@contextmanager
def _process_group(rank: Rank) -> Iterator[None]:
    """Have a process group while this is entered, if there is to be one."""
    if not rank.backend:
        yield
        return
    dist: Any = import_module("torch.distributed")
    core: Any = import_module("torch.distributed.distributed_c10d")
    rendezvous: Any = sys.modules["torch.distributed.rendezvous"]
    handlers: dict[str, Any] = rendezvous._rendezvous_handlers  # noqa: SLF001
    before, handlers["env"] = handlers["env"], _rendezvous(rank, dist)
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(rank, core, over), daemon=True, name="rank watch")
    try:
        watch.start()
        if not core.is_initialized():
            # Part of the keys in the store: it differs where a rank is new, or has failed to begin.
            core._world.group_count = 0  # noqa: SLF001 - it has no public name
        core.init_process_group(rank.backend, timeout=timedelta(seconds=rank.timeout_s))
        setattr(core, _READY, True)
        yield
    finally:
        over.set()
        setattr(core, _READY, False)
        handlers["env"] = before
        with suppress(Exception):  # of a group that was aborted
            if dist.is_initialized():
                dist.destroy_process_group()
        watch.join()


def _rendezvous(rank: Rank, dist: Any) -> Callable[..., Iterator[Any]]:
    """Return what PyTorch asks for `env://`: a store in a file of the folder, each time another."""
    made = iter(range(1 << 30))

    def handler(url: str, timeout: timedelta | None = None, **options: Any) -> Iterator[Any]:
        del url, options
        store = dist.FileStore(str(Path(rank.folder) / f"store-{next(made)}"), rank.size)
        store.set_timeout(timeout or timedelta(seconds=rank.timeout_s))
        yield store, rank.rank, rank.size

    return handler


def _patch(core: Any) -> None:
    """Have `init_process_group` do nothing where the group is there already; once a process."""
    if hasattr(core, _READY):
        return
    original = core.init_process_group

    def init_process_group(*args: Any, **kwargs: Any) -> None:
        if getattr(core, _READY) and core.is_initialized():
            setattr(core, _READY, False)  # the next one is a mistake of the script's
            return
        original(*args, **kwargs)

    setattr(core, _READY, False)
    init_process_group.__doc__ = original.__doc__
    core.init_process_group = init_process_group
    public: Any = import_module("torch.distributed")
    public.init_process_group = init_process_group


def _watch(rank: Rank, core: Any, over: threading.Event) -> None:
    """End what waits for other ranks once the notebook says so."""
    stop = Path(rank.folder) / STOP
    while not over.wait(_LOOK_S):
        if not (stop.exists() or INTERRUPTS.is_due):
            continue
        with suppress(Exception):  # there is none yet, or none any more
            group = core._get_default_group()  # noqa: SLF001 - it has no public name
            if rank.backend == "nccl":
                core._abort_process_group(group)  # noqa: SLF001
            else:
                group._get_backend(_cpu()).abort()  # noqa: SLF001
        return


def _cpu() -> Any:
    return import_module("torch").device("cpu")


def has_torch() -> bool:
    """Whether this process could import PyTorch."""
    return find_spec("torch") is not None
