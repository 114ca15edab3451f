"""The gallery: every simulation and every trainer, each with a small picture of its own example.

That the examples run, `test_docs.py` says.
"""

import re

from accel_lab.blueprints import realtime, train
from docs.images.gallery import DRAWN, IMAGES, PAGE, PART

LARGEST = 60 << 10
SHOWN = [
    *(f"realtime.{kind.__name__}" for kind in realtime.Simulation.__subclasses__()),
    "realtime.GpuSparseStructureActor",
    "realtime.MultiPassAnalysisActor",
    "realtime.ReductionAnalysisActor",
    "realtime.VideoEffectsGraph",
    *(f"train.{name}" for name in vars(train) if name.endswith("Trainer")),
    "train.AsyncParameterServer",
]


def test_every_simulation_and_every_trainer_is_there() -> None:
    code = "".join(part["code"] or "" for part in PART.finditer(PAGE.read_text()))
    assert len(SHOWN) > 9
    assert [name for name in SHOWN if f"{name}(" not in code] == []


def test_every_section_with_an_example_has_a_picture_that_the_script_draws() -> None:
    sections = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    found = [
        [part["picture"] for part in PART.finditer(section) if part["picture"]]
        for section in sections
    ]
    assert [name for names in found for name in names] == list(DRAWN)
    assert {len(names) for names in found} == {1}


def test_pictures_are_small() -> None:
    files = sorted(IMAGES.glob("gallery-*.png"))
    assert [path.stem.removeprefix("gallery-") for path in files] == sorted(DRAWN)
    assert max(path.stat().st_size for path in files) <= LARGEST
