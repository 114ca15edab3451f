"""What is counted of work, and what is only known to have been there."""

import re

from accel_lab import views
from accel_lab.compute.events.samples import Slice
from accel_lab.views.scene.scene import Scene
from accel_lab.views.scene.tally import tally
from accel_lab.views.widget.long_work import long_work
from tests.views.made_up import lab
from tests.views.work import Recorded, work


def test_messages_that_were_not_traced_are_drawn_and_not_counted_as_one() -> None:
    gemm = Slice(1, "Gemm", "blas", "kernel", 1000.0, 1000.5)
    several = Slice(1200, "not traced", "blas", "untraced", 1000.5, 1001.0)
    goes_on = Slice(1200, "not traced", "blas", "untraced", 990.0, None)
    scene = Scene()
    scene.add(work("gpu0", [gemm, several], [goes_on], dropped=1200))
    known = tally(scene)
    (row,) = known.rows
    assert (row.count, row.passed, row.busy, row.longest) == (1, 1200, 0.5, 0.5)
    assert known.span == (1000.0, 1001.0)
    assert list(known.works) == [(0, "Gemm", "kernel", False), (0, "not traced", "untraced", False)]
    view = views.timeline(lab())
    said = view.text(view.fold(scene) | {"at": 1001.0})
    assert "▶ more than are traced" in said
    assert "1200 slices never seen" in said
    assert re.search(r"gpu0/blas +1 of 1201 +≥ 50\.0 %", said), "what is not known is not said"
    assert long_work(scene, Recorded(scene)) == []


def test_what_was_not_traced_did_not_end_with_its_context() -> None:
    scene = Scene()
    goes_on = Slice(1200, "not traced", "blas", "untraced", 990.0, None)
    scene.add(work("gpu0", [], [goes_on]))
    later = work("gpu0")
    scene.add(type(later)(device="gpu0", generation=2, done=(), running=(), at=1001.0))
    assert not scene.slices
