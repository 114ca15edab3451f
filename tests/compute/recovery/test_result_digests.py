"""What a system records of its results."""

from typing import Any

import numpy as np
import pytest

from accel_lab import System, blas
from accel_lab.compute.actors.digest import Digest
from accel_lab.compute.lineage.content_store import key_of
from accel_lab.compute.lineage.markers import Result, marker_of
from accel_lab.compute.lineage.recorded_message import decode
from accel_lab.errors import InvalidArgument


def results(lab: System) -> list[Result]:
    """Run a few messages and return what was recorded of what they made."""
    (recorder,) = lab.recorders
    parts: list[bytes] = []
    recorder.followers.append(parts.extend)
    (cpu,) = lab.devices
    x = cpu.put(np.arange(6.0).reshape(2, 3))
    y = blas.scal(x, 2.0)
    blas.scal(y, 2.0, out=y)
    z = cpu.run(np.transpose, y, pure=True)
    cpu.get(z).result()
    lab.flush()
    found = [decode(part) for part in parts]
    return [
        marker for raw in found if raw[0] == -6 and isinstance(marker := marker_of(raw), Result)
    ]


def test_digests_are_those_of_the_bytes_in_c_order() -> None:
    x = np.arange(6.0).reshape(2, 3)
    with System("host", results="digests") as lab:
        found = results(lab)
    expected = [x, 2 * x, 4 * x, 4 * x.T]
    assert [r.digest for r in found] == [key_of(e.tobytes()) for e in expected]
    assert [(r.shape, r.dtype, r.key) for r in found][-1] == ((3, 2), "float64", "")


def test_values_are_kept_beside_their_digests() -> None:
    with System("host", results="values") as lab:
        found = results(lab)
        (recorder,) = lab.recorders
        kept = [recorder.contents.get(r.key) for r in found]
    assert kept[1] == (2 * np.arange(6.0)).tobytes()


def test_nothing_is_recorded_of_results_unless_asked_for() -> None:
    with System("host") as lab:
        assert results(lab) == []
    with pytest.raises(InvalidArgument):
        System("host", results="all")  # type: ignore[arg-type]


def test_a_digest_can_be_asked_for() -> None:
    with System("host") as lab:
        (cpu,) = lab.devices
        x = cpu.put(np.arange(4, dtype=np.int16))
        data = np.arange(4, dtype=np.int16).tobytes()
        found: Any = cpu.ask(Digest(x)).result()
        assert found == (key_of(data), (4,), "int16", None)
        found = cpu.ask(Digest(x, values=True)).result()
        assert found[3] == data
