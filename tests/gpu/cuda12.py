"""CUDA 12 by itself: its wheels in an environment of their own, and what they allow is run.

    python tests/gpu/cuda12.py FOLDER...

The folders hold wheels: cupy-cuda12x, nvmath-python, cuda-bindings 12.9, cuda-core,
cuda-pathfinder, nvidia-cuda-nvrtc-cu12, nvidia-cuda-runtime-cu12, and what of accel_lab's
requirements this interpreter lacks. The others, NumPy for one, are linked from it; nothing else
of it is seen, so that its own CUDA packages do not shine through. Prints a row for each step; fails
if one did not run whose libraries are there.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
NEVER = re.compile(r"cuda|cupy|nvidia_(?!ml_py)|nvmath|nccl|cupti|accel_lab")
"""What is taken from the wheels alone."""
SHOWN = re.compile(r"cuda|cupy|nvidia|nvmath|numpy")
WIDTH = 300


def named(text: str) -> str:
    """Return the name that a requirement begins with, as wheels write it."""
    found = NAME.match(text)
    return re.sub(r"[-_.]+", "_", found[0] if found else "").lower()


def install(wheels: list[Path], site: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-compile", "--target", str(site), *map(str, wheels)]
    subprocess.run(command, check=True)


def link(site: Path, given: set[str]) -> None:
    """Link what accel_lab requires and no wheel gave, from the interpreter that runs this."""
    ahead = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    while ahead:
        requirement = ahead.pop()
        name = named(requirement)
        if name in given or NEVER.match(name) or "extra ==" in requirement:
            continue
        given.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            sys.stdout.write(f"absent: {name}\n")
            continue
        ahead += found.requires or []
        for top in {file.parts[0] for file in found.files or [] if file.parts[0] != ".."}:
            source = Path(str(found.locate_file(top)))
            if top != "__pycache__" and source.exists() and not (site / top).exists():
                (site / top).symlink_to(source)


def main(folders: list[str]) -> int:
    wheels = sorted(path for folder in folders for path in Path(folder).glob("*.whl"))
    if not wheels:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="accel_lab-cuda12-") as folder:
        venv.create(folder, symlinks=True)
        (site,) = Path(folder).glob("lib/python*/site-packages")
        install(wheels, site)
        link(site, {named(path.name.partition("-")[0]) for path in wheels})
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
        done = subprocess.run(
            [f"{folder}/bin/python", __file__, "--inside"],
            cwd=folder,
            env=kept | {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "ACCEL_LAB_CACHE": folder},
            check=False,
        )
    return done.returncode


# What follows runs in that environment.


def libraries() -> list[str]:
    """Return the files of CUDA's libraries that are loaded; in a context's process."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    return sorted(path for path in paths if re.search(r"lib(?:cu|nv)\w*(?:-\w+)?\.so", path))


def elementwise(gpu: Any) -> str:
    import numpy as np

    a, b = (np.random.default_rng(n).random((300, 200), np.float32) for n in (1, 2))
    np.testing.assert_allclose((gpu.put(a) * 2 + gpu.put(b)).get(), a * 2 + b, rtol=1e-6)
    total = gpu.put(a).sum().get()
    np.testing.assert_allclose(total, a.sum(), rtol=1e-5)
    return f"a * 2 + b of 300x200 and a sum equal NumPy's; the sum is {float(total):.6g}"


def order(gpu: Any) -> str:
    import numpy as np

    from accel_lab import array

    a = np.random.default_rng(3).random(10_000)
    np.testing.assert_array_equal(array.sort(gpu.put(a)).get(), np.sort(a))
    return "10 000 numbers are sorted as NumPy sorts them"


def compiled(gpu: Any) -> str:
    import numpy as np

    from accel_lab import jit

    source = """
    extern "C" __global__ void saxpy(float* y, const float* x, float a, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] += a * x[i];
    }
    """
    x, y = (np.random.default_rng(n).random(1000, np.float32) for n in (4, 5))
    there = gpu.put(y)
    jit.compile(gpu, source, "saxpy")(4, 256, (there, gpu.put(x), np.float32(3), np.int32(1000)))
    np.testing.assert_allclose(there.get(), y + 3 * x, rtol=1e-6)
    return "saxpy, compiled by NVRTC, equals NumPy's"


def drawn(gpu: Any) -> str:
    import numpy as np

    from accel_lab import System, rng

    with System("host", devices=1) as lab:
        expected = rng.uniform(lab.devices[0], (1000,), "float32", seed=7).get()
    np.testing.assert_array_equal(rng.uniform(gpu, (1000,), "float32", seed=7).get(), expected)
    return "1000 uniforms have the bits of host's"


def replayed(gpu: Any) -> str:
    import numpy as np

    from accel_lab.compute.actors.fault import Inject
    from accel_lab.errors import ContextLost

    cause = "nobody was told"
    a = np.arange(1000.0)
    kept = gpu.put(a) * 3
    kept.get()
    before = gpu.generation
    try:
        gpu.ask(Inject("kill")).result()
    except ContextLost as error:
        cause = type(error).__name__
    np.testing.assert_array_equal(kept.get(), a * 3)
    assert gpu.generation == before + 1
    return f"the context was killed ({cause}); generation {gpu.generation} has the buffer again"


def multiplied(gpu: Any) -> str:
    import numpy as np

    from accel_lab import blas

    a = np.random.default_rng(6).random((64, 64))
    np.testing.assert_allclose(blas.gemm(gpu.put(a), gpu.put(a)).get(), a @ a)
    return "a product of 64x64 equals NumPy's"


def transformed(gpu: Any) -> str:
    import numpy as np

    from accel_lab import fft

    a = np.random.default_rng(8).random(1024)
    np.testing.assert_allclose(fft.rfft(gpu.put(a)).get(), np.fft.rfft(a), atol=1e-9)
    return "a transform of 1024 equals NumPy's"


def alone(gpu: Any) -> str:
    from accel_lab.backends.cuda.jit.nvrtc import include_folders

    found = gpu.run(libraries).result()
    files = {Path(path).name for path in found}
    assert not [name for name in files if re.search(r"\.so\.13\b", name)], found
    headers = [path for path in gpu.run(include_folders).result() if sys.prefix not in path]
    seen = f"; headers of this machine: {', '.join(headers)}" if headers else ""
    return f"loaded: {', '.join(sorted(files))}{seen}"


ROWS: tuple[tuple[str, Callable[[Any], str], str], ...] = (
    ("array: elementwise, a sum", elementwise, ""),
    ("array: sort", order, ""),
    ("jit: a kernel", compiled, ""),
    ("rng: uniform", drawn, ""),
    ("a kill, and a replay", replayed, ""),
    ("blas: Gemm", multiplied, "nvidia_cublas_cu12"),
    ("fft: rfft", transformed, "nvidia_cufft_cu12"),
    ("no library of CUDA 13", alone, ""),
)
"""What is run, and the wheel without which it is refused."""


def inside() -> int:
    there = {named(one.name): one.version for one in distributions()}
    listed = [f"{name} {version}" for name, version in sorted(there.items()) if SHOWN.search(name)]
    sys.stdout.write(f"Python {sys.version.split()[0]}: {', '.join(listed)}\n")
    from accel_lab import System
    from accel_lab.backends import cuda
    from accel_lab.errors import BackendUnavailable

    try:
        lab = System("cuda", devices=1, recover="replay")
    except BackendUnavailable as error:
        sys.stdout.write(f"refused: {error}\n")
        return 1
    failed = 0
    with lab:
        (gpu,) = lab.devices
        sys.stdout.write(f"{gpu}: {cuda.versions()}\n")
        for what, step, wheel in ROWS:
            try:
                said = f"ran      {step(gpu)}"
            except Exception as error:  # noqa: BLE001 - told in the table
                absent = wheel and wheel not in there
                failed += not absent
                reason = f"{type(error).__name__}: {' '.join(str(error).split())[:WIDTH]}"
                said = f"refused  {f'without {wheel}: ' if absent else ''}{reason}"
            sys.stdout.write(f"{what:28}{said}\n")
            sys.stdout.flush()
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(inside() if sys.argv[1:] == ["--inside"] else main(sys.argv[1:]))
