"""A scene that is told again."""

import pytest

from accel_lab.compute.events.lifecycle import CircuitOpened
from accel_lab.compute.events.samples import (
    Block,
    HealthSampled,
    MemorySampled,
    Reading,
    Slice,
    SystemEnded,
    TreeSampled,
    WorkTraced,
)
from accel_lab.views.scene.recap import SLICES, recap
from accel_lab.views.scene.scene import Scene
from tests.views.made_up import lab as made_up

BLOCK = Block(ids=(1,), address=0, nbytes=64, owner="Put #1", dtype="float32", shape=(16,))


def seen() -> Scene:
    scene = Scene()
    for fact in (
        CircuitOpened(at=1.0, device="gpu0", cause="4 losses"),
        MemorySampled(
            at=2.0, device="gpu0", generation=1, used_bytes=64, total_bytes=None, blocks=(BLOCK,)
        ),
        MemorySampled(
            at=3.0, device="gpu0", generation=2, used_bytes=0, total_bytes=None, blocks=()
        ),
        WorkTraced(
            at=4.0,
            device="gpu0",
            generation=2,
            done=(Slice(seq=1, name="Gemm", stream="blas", kind="kernel", start=3.0, end=3.5),),
            running=(Slice(seq=2, name="Gemm", stream="blas", kind="kernel", start=4, end=None),),
            dropped=3,
        ),
        HealthSampled(at=5.0, source="gpu0", model="H200", readings=(Reading("memory", 1.0),)),
        TreeSampled(at=6.0, root=made_up().tree()),
    ):
        scene.add(fact)
    return scene


@pytest.mark.parametrize("closed", [False, True])
def test_a_recap_folds_into_the_same_scene(closed: bool) -> None:  # noqa: FBT001
    scene, again = seen(), Scene()
    if closed:
        scene.add(SystemEnded(at=7.0, name="lab"))
    for fact in recap(scene):
        again.add(fact)
    assert vars(again) == vars(scene)


def test_a_recap_counts_the_slices_that_it_leaves_out() -> None:
    scene, again = seen(), Scene()
    one = Slice(seq=1, name="Gemm", stream="blas", kind="kernel", start=3.0, end=3.5)
    scene.add(WorkTraced(device="gpu0", generation=2, done=(one,) * (SLICES + 100), running=()))
    for fact in recap(scene):
        again.add(fact)
    assert (again.traced, again.untraced) == (SLICES, {"gpu0": 3 + 101})
