"""Run public kernels, their text unchanged: `python -m tests.benchmarks.public_kernels`.

They are not part of the project. Fetch them first, each into a folder of the one that is named:

    git clone https://github.com/karpathy/llm.c FOLDER/llm.c
    git clone https://github.com/NVIDIA/cuda-samples FOLDER/cuda-samples
"""

import argparse
import sys
from pathlib import Path

from accel_lab import System
from tests.benchmarks.public_kernels import attention, llmc, pictures, samples
from tests.benchmarks.public_kernels.run import commit_of, run, source_of

COLLECTIONS = (
    ("llm.c", (llmc.cases, attention.cases)),
    ("cuda-samples", (samples.cases, pictures.cases)),
)


def main() -> None:
    """Print what became of each kernel, and how many ran and were right."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.public_kernels")
    parser.add_argument("folder", type=Path, help="where the checkouts are")
    parser.add_argument("--backend", default="auto", help="auto, host or cuda")
    parser.add_argument("--only", default="", help="kernels whose names have this in them")
    parser.add_argument("--show", action="store_true", help="print the sources, and run nothing")
    given = parser.parse_args()
    folder, backend, only, show = given.folder, given.backend, given.only, given.show
    with System(backend, devices=1) as lab:
        for name, cases in COLLECTIONS:
            chosen = [case for some in cases for case in some() if only in case.kernel]
            if show:
                for case in chosen:
                    _say(source_of(case, folder / name))
                continue
            outcomes = []
            host = lab.backend == "host"
            for one in run(lab.devices[0], folder / name, chosen, host=host):
                outcomes.append(one)
                state = ("equal" if not one.said else "wrong") if one.ran else "refused"
                _say(f"{state:8}{one.case.files[-1].rpartition('/')[2]}: {one.case.kernel}")
                if one.said:
                    _say("        " + one.said.replace("\n", "\n        ")[:1500])
            ran, said = sum(one.ran for one in outcomes), sum(not one.said for one in outcomes)
            refused = len(outcomes) - ran
            _say(
                f"{name} at {commit_of(folder / name)} on {lab.backend}: {len(outcomes)} kernels, "
                f"{ran} ran, {said} equal, {refused} refused"
            )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
