"""A notebook of twenty cells; run as a program it goes on where a folder's last commit has ended.

Each cell leaves a number in `trace`. It prints how many cells are committed, and in the end the
trace.
"""

import sys
from pathlib import Path

from tests.interactive import shell
from tests.project import ROOT

KERNEL = """extern "C" __global__ void twice(double* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}"""
CELLS = (
    (
        "import random\nimport numpy as np\nfrom accel_lab import array, blas, jit, rng, sparse\n"
        "trace, done = [], 1\nnp.random.seed(5); random.seed(6)\nown = np.random.default_rng(7)"
    ),
    (
        "def note(value):\n    global done\n    trace.append(float(value)); done += 1\n"
        "class Scale:\n    factor = 0.25\nnote(1)"
    ),
    "gpu = lab.devices[0]\na = gpu.put(np.arange(12.0).reshape(3, 4))\nnote(a.get().sum())",
    "b = blas.gemm(a, a, trans_b='t')\nrow = b[1]\nnote(b.get().sum())",
    "noise = rng.Generator(gpu, 11)\nu = noise.uniform((3, 3), 'float64')\nnote(u.get().sum())",
    (
        f"twice = jit.compile(gpu, '''{KERNEL}''', 'twice')\nx = gpu.put(np.ones(8))\n"
        "twice(1, 8, (x, 8))\nnote(x.get().sum())"
    ),
    (
        "def unknown(values, factor):\n    values *= factor\n    return values + 1\n"
        "y = gpu.run(unknown, x, 3.0)\nnote(y.get().sum())"
    ),
    "blas.axpy(gpu.put(np.ones(3)), row, out=row)\nnote(b.get().sum())",
    (
        "%%gpu\nclass Model:\n    def __init__(self):\n        self.w = xp.ones(4)\n"
        "    def step(self, x):\n        self.w = self.w * 0.5 + x.sum(axis=0) + np.random.rand()\n"
        "        return float(self.w.sum())\nmodel = Model()\nloss = 0.0"
    ),
    "%%gpu\nimport numpy as np\nfor _ in range(3):\n    loss = model.step(a)",
    "note(loss)",
    (
        "kept = {'mean': noise.normal((4,), 'float64'), 'rows': [row, row], 'n': 3}\n"
        "note(kept['mean'].get().sum() + np.random.rand() + random.random() + own.normal())"
    ),
    "twice(1, 8, (y, 8))\nnote((y + x).get().sum())",
    "%%gpu\nhistory = [model.step(a) for _ in range(2)]\nweights = model.w",
    "note(sum(history) + weights.get().sum())",
    (
        "m = sparse.from_dense(array.where(b > 60, b, array.zeros(gpu, (3, 3), 'float64')))\n"
        "note((m @ a).get().sum() * Scale.factor)"
    ),
    "for _ in range(1500):\n    blas.scal(x, 1.0001, out=x)\nnote(x.get().sum())",
    "note(kept['rows'][0].get().sum() + noise.uniform((2,), 'float64').get().sum())",
    "%%gpu\nloss = model.step(a)",
    "note(float(loss) + np.random.rand() + random.random() + own.normal() + x.get().sum())",
)


def main(folder: str) -> None:
    """Open a folder and run what is left of the cells."""
    with shell() as notebook:

        def run(source: str) -> None:
            notebook(source)
            if notebook.error is not None:
                raise notebook.error

        run("%load_ext accel_lab\nimport accel_lab")
        run(f"lab = accel_lab.open({folder!r}, 'host', run_code=True)")
        names = notebook.ipython.user_ns
        first = names["ran"] + 1 if "ran" in names else 0
        for number in range(first, len(CELLS)):
            names["ran"] = number
            run(CELLS[number])
            told = f"committed {number}\n"
            sys.__stdout__.write(told)  # type: ignore[union-attr]
            sys.__stdout__.flush()  # type: ignore[union-attr]
        sys.__stdout__.write(f"trace {names['trace']!r}\n")  # type: ignore[union-attr]
        run("lab.close()")


if __name__ == "__main__":
    assert Path.cwd() == ROOT
    main(sys.argv[1])
