"""What every test shares: steady numerics, seeds in the header, and pieces that may be absent.

A test that needs a piece of the machine says so: `require("browser")`, or `@pytest.mark.gpu`
and `@pytest.mark.browser`. Without the piece it skips with the reason; on a machine that promises
the piece, `ACCEL_LAB_REQUIRE=browser,node,wheel` turns that skip into a failure.
"""

import faulthandler
import gc
import os
import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Before NumPy is imported: two test processes on two cores must not fight over BLAS threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What the tests open is not offered to the dashboards of who runs them; those of the feed undo it.
os.environ.setdefault("ACCEL_LAB_FEED", "0")

# Who runs them behind a shell's `&` has told them to ignore Ctrl-C, which some of them press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What the tests compile is not for the user's cache, and not from it.
if "ACCEL_LAB_CACHE" not in os.environ:
    _cache = tempfile.TemporaryDirectory(prefix="accel_lab-tests-", ignore_cleanup_errors=True)
    os.environ["ACCEL_LAB_CACHE"] = _cache.name

import hypothesis
import pytest

from tests import ports

hypothesis.settings.register_profile("accel_lab", deadline=None, print_blob=True, derandomize=False)
hypothesis.settings.load_profile("accel_lab")


@pytest.fixture(scope="session", autouse=True)
def _short_farewells() -> None:
    """Have `with` not wait long at its end for what a test leaves running on purpose."""
    from accel_lab.system import System

    System.finish_s = 0.5


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    """Put the environment back: a context made in the test's own process sets some of it."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys() - {"PYTEST_CURRENT_TEST"}:
        del os.environ[name]
    os.environ.update(before)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup() -> None:
    """Take away the variable by which pytest tells where it is.

    A context takes over the environment with the next call, and each phase of a test has another.
    """
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> None:
    """Take it away again."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


def require(piece: str) -> None:
    """Skip the calling test if this machine lacks `piece`, or fail it where that is promised."""
    if reason := PIECES[piece]():
        if piece in _promised():
            pytest.fail(f"ACCEL_LAB_REQUIRE names {piece!r}: {reason}", pytrace=False)
        pytest.skip(reason)


def _browser() -> str | None:
    if find_spec("playwright") is None:
        return "playwright is not installed"
    if not (shutil.which("chromium") or shutil.which("google-chrome")):
        return "neither chromium nor google-chrome is on the path"
    return None


def _cuda() -> str | None:
    if find_spec("cupy") is None or find_spec("nvmath") is None:
        return "the packages of the cuda12 or cuda13 extra are not installed"
    import pynvml

    try:
        pynvml.nvmlInit()
        return None if pynvml.nvmlDeviceGetCount() else "the driver shows no CUDA device"
    except pynvml.NVMLError as error:
        return f"no NVIDIA driver answers: {error}"


def _cutlass() -> str | None:
    if find_spec("cutlass_library") is None:
        return "the headers of the cutlass extra are not installed"
    return None


def _ffmpeg() -> str | None:
    if shutil.which("ffmpeg") or find_spec("imageio_ffmpeg") is not None:
        return None
    return "ffmpeg is not on the path, and imageio-ffmpeg is not installed"


def _node() -> str | None:
    return None if shutil.which("node") else "node is not on the path"


def _notebook7() -> str | None:
    return None if find_spec("notebook") else "Notebook is not installed"


def _wgpu() -> str | None:
    from accel_lab.backends import wgpu

    return wgpu.available()


def _wheel() -> str | None:
    missing = [
        name for name in ("build", "hatch_vcs", "hatchling", "pip") if find_spec(name) is None
    ]
    return f"not installed: {', '.join(missing)}" if missing else None


def _compiler() -> str | None:
    if any(map(shutil.which, ("c++", "g++", "clang++"))) or os.environ.get("CXX"):
        return None
    return "there is no C++ compiler on the path"


def _postgres() -> str | None:
    if missing := [name for name in ("psycopg", "sqlalchemy") if find_spec(name) is None]:
        return f"not installed: {', '.join(missing)}"
    from tests.journal.servers import postgres_folder

    if postgres_folder() is None:
        return "PostgreSQL's programs (initdb, postgres) are neither on the path nor in /usr/lib"
    return None


def _moto() -> str | None:
    missing = [name for name in ("boto3", "moto", "flask") if find_spec(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else None


def _dynalite() -> str | None:
    from tests.journal.servers import dynalite

    if find_spec("boto3") is None:
        return "not installed: boto3"
    return None if dynalite() else "npm's dynalite is neither on the path nor at ACCEL_LAB_DYNALITE"


def _mongodb() -> str | None:
    missing = [name for name in ("pymongo", "nx_27017") if find_spec(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else None


def _cassandra() -> str | None:
    if find_spec("cassandra") is None:
        return "not installed: cassandra-driver"
    if not os.environ.get("ACCEL_LAB_CASSANDRA"):
        return "ACCEL_LAB_CASSANDRA names no server, as cassandra://host:9042"
    return None


def _redis() -> str | None:
    if find_spec("redis") is None:
        return "not installed: redis"
    if not (shutil.which("redis-server") or shutil.which("valkey-server")):
        return "neither redis-server nor valkey-server is on the path"
    return None


def _torch() -> str | None:
    return None if find_spec("torch") else "PyTorch is not installed: it is the torch extra"


def _jax() -> str | None:
    return None if find_spec("jax") else "JAX is not installed"


def _ray() -> str | None:
    return None if find_spec("ray") else "Ray is not installed: it is the ray extra"


def _sshd() -> str | None:
    from tests.compute.cluster.ssh.far_host import sshd

    if not (shutil.which("ssh") and shutil.which("ssh-keygen")):
        return "OpenSSH's client (ssh, ssh-keygen) is not on the path"
    return None if sshd() else "sshd is neither on the path nor in /usr/sbin"


def _pyarrow() -> str | None:
    return None if find_spec("pyarrow") else "pyarrow is not installed: it is of the files extra"


def _onnx() -> str | None:
    return None if find_spec("onnx") else "onnx is not installed: it is the onnx extra"


def _onnxruntime() -> str | None:
    return None if find_spec("onnxruntime") else "onnxruntime is not installed: models extra"


def _safetensors() -> str | None:
    return None if find_spec("safetensors") else "safetensors is not installed"


def _tensorrt() -> str | None:
    if find_spec("tensorrt_rtx"):
        return None
    return "TensorRT-RTX is not installed: it is the tensorrt extra"


def _zarr() -> str | None:
    return None if find_spec("zarr") else "zarr is not installed: it is of the files extra"


PIECES: dict[str, Callable[[], str | None]] = {
    "browser": _browser,
    "cassandra": _cassandra,
    "compiler": _compiler,
    "cuda": _cuda,
    "cutlass": _cutlass,
    "dynalite": _dynalite,
    "ffmpeg": _ffmpeg,
    "jax": _jax,
    "mongodb": _mongodb,
    "moto": _moto,
    "node": _node,
    "notebook7": _notebook7,
    "onnx": _onnx,
    "onnxruntime": _onnxruntime,
    "postgres": _postgres,
    "pyarrow": _pyarrow,
    "ray": _ray,
    "redis": _redis,
    "safetensors": _safetensors,
    "sshd": _sshd,
    "tensorrt": _tensorrt,
    "torch": _torch,
    "wgpu": _wgpu,
    "wheel": _wheel,
    "zarr": _zarr,
}


def _promised() -> set[str]:
    return {word for word in os.environ.get("ACCEL_LAB_REQUIRE", "").split(",") if word}


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of every hypothesis test here, so that the header can print it.

    Notebooks have no fixtures, but kernels.
    """
    ports.give_to_kernels()
    if unknown := _promised() - PIECES.keys():
        msg = f"ACCEL_LAB_REQUIRE: {sorted(unknown)} unknown; it takes {sorted(PIECES)}"
        raise pytest.UsageError(msg)
    if "loadscopereorder" in config.option:
        config.option.loadscopereorder = False  # `pytest_collection_modifyitems` orders the files
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with files that may take longest, or one core waits in the end; the most tests next."""
    counts, limits = Counter[Path](), dict[Path, float]()
    for item in items:
        mark = item.get_closest_marker("timeout")
        limit = float(mark.args[0]) if mark else 0.0
        limits[item.path] = max(limit, limits.get(item.path, 0.0))
        counts[item.path] += 1
    items.sort(key=lambda item: (-limits[item.path], -counts[item.path]))


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(sched: Any) -> None:
    """Have no worker wait for files that one which crashed had done: xdist would hand those on."""
    for file, done in list(sched.workqueue.items()):
        if all(done.values()):
            del sched.workqueue[file]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep the thousands of tests out of what the collector of garbage looks through each time."""
    gc.collect()
    gc.freeze()


def pytest_report_header(config: pytest.Config) -> str:
    """Print what a red run needs to be repeated."""
    promised = ",".join(sorted(_promised())) or "nothing"
    return f"repeat with: --hypothesis-seed={config.option.hypothesis_seed}; required: {promised}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to what has waited too long where every thread is: one of them keeps the others."""
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(TimeoutError):
        with tempfile.TemporaryFile("w+") as file:
            faulthandler.dump_traceback(file)
            file.seek(0)
            report.sections.append(("threads at the end of the wait", file.read()))
    return report


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test marked `gpu` or `browser` requires that piece."""
    if item.get_closest_marker("gpu"):
        require("cuda")
    if item.get_closest_marker("browser"):
        require("browser")
