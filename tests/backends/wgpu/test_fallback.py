"""What wgpu lacks, computed by the host where the user says so, against what `host` gives."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_lab import (
    System,
    array,
    attention,
    backends,
    blas,
    dnn,
    event,
    fft,
    jit,
    rng,
    solver,
    views,
)
from accel_lab.backends import cuda, wgpu
from accel_lab.backends.fallback import APART, accepted, helped
from accel_lab.backends.host.support import SUPPORT as HOST
from accel_lab.backends.wgpu.support import table
from accel_lab.compute.device import Device
from accel_lab.errors import ContextLost, InvalidArgument, UnsupportedDtype
from accel_lab.libraries.solver.errors import SingularMatrix
from tests.conftest import require

WAIT_S = 60.0


@pytest.fixture(scope="module")
def helped_system() -> Iterator[System]:
    """Open a system of wgpu that the host helps out."""
    require("wgpu")
    with System("wgpu", devices=1, fallback="host") as lab:
        yield lab
        lab.check()


@pytest.fixture(scope="module")
def gpu(helped_system: System) -> Device:
    """Its device."""
    return helped_system.devices[0]


@pytest.fixture(scope="module")
def cpu() -> Iterator[Device]:
    """Open a device of the host."""
    with System("host", devices=1) as lab:
        yield lab.devices[0]


def _values(shape: tuple[int, ...], dtype: str = "float64") -> Any:
    made = np.random.default_rng(7).standard_normal(shape)
    return (made + 1j * made[::-1]).astype(dtype) if dtype[0] == "c" else made.astype(dtype)


CASES: dict[str, Callable[[Device], Any]] = {
    "a library that it lacks": lambda d: solver.solve(
        d.put(_values((5, 5))), d.put(_values((5, 2)))
    ),
    "several results": lambda d: solver.svd(d.put(_values((4, 3)))),
    "a message that it lacks": lambda d: fft.dct(d.put(_values((3, 8)))),
    "a dtype that it lacks": lambda d: array.exp(d.put(_values((6,), "complex64"))),
    "a function of the dtype": lambda d: array.exp(d.put(_values((6,)))),
    "a narrow dtype": lambda d: d.put(_values((6,), "float32")).astype("float8_e5m2") * 2,
    "a shape that only the device knows": lambda d: array.unique(d.put(_values((9,)).round())),
    "complex numbers in a product": lambda d: blas.gemm(
        d.put(_values((3, 4), "complex128")), d.put(_values((4, 2), "complex128"))
    ),
    "a softmax": lambda d: dnn.softmax(d.put(_values((3, 5), "float32"))),
    "draws": lambda d: rng.poisson(d, 3.0, (50,), seed=4),
    "another generator": lambda d: rng.generate(d, "mt19937", (7,), seed=4),
    "a view of what it reads": lambda d: fft.dct(d.put(_values((8, 6))).T[1:4]),
    "nothing": lambda d: fft.dct(d.put(np.zeros((0, 4)))),
    "a scalar": lambda d: array.exp(d.put(np.array(1.5))),
}


@pytest.mark.parametrize("name", CASES)
def test_what_wgpu_lacks_is_what_the_host_computes(gpu: Device, cpu: Device, name: str) -> None:
    made = [CASES[name](device) for device in (gpu, cpu)]
    there, here = [one if isinstance(one, tuple) else (one,) for one in made]
    assert len(there) == len(here)
    for ours, hosts in zip(there, here, strict=True):
        got, exact = ours.get(), hosts.get()
        assert (got.dtype, got.shape) == (exact.dtype, exact.shape)
        assert got.tobytes() == exact.tobytes()


def test_an_output_in_place_is_written_and_what_it_leaves_stays(gpu: Device, cpu: Device) -> None:
    def ger(device: Device) -> tuple[Any, Any]:
        whole = device.put(_values((6, 8)))
        x, y = device.put(_values((3,))), device.put(_values((4,)))
        blas.ger(x, y, out=whole[1:4, ::2], alpha=0.5)
        return whole.get(), whole.sum().get()

    (ours, our_sum), (hosts, their_sum) = ger(gpu), ger(cpu)
    assert ours.tobytes() == hosts.tobytes()
    assert not np.array_equal(ours, _values((6, 8)))
    np.testing.assert_allclose(our_sum, their_sum, rtol=1e-14)


def test_overlapping_operands_overlap_on_the_host(gpu: Device) -> None:
    x = _values((5, 5), "complex128")
    one = gpu.put(x)
    array.exp(one, out=one)
    np.testing.assert_array_equal(one.get(), np.exp(x))
    with pytest.raises(InvalidArgument, match="overlapping"):
        array.exp(one[:4], out=one[1:]).result(WAIT_S)
    one[1:] = one[:-1]  # as of one memory: rows are read before they are written
    np.testing.assert_array_equal(one.get()[1:], np.exp(x)[:-1])


def test_messages_of_both_follow_each_other(gpu: Device) -> None:
    x = _values((40, 40), "float32")
    a = gpu.put(x) @ gpu.put(x.T) + array.eye(gpu, 40, dtype="float32") * 50
    factor = solver.cholesky(a)
    whole = (factor @ factor.T).get()
    np.testing.assert_allclose(whole, x @ x.T + 50 * np.eye(40), rtol=1e-4, atol=1e-3)


def test_errors_are_those_of_the_host(gpu: Device, cpu: Device) -> None:
    errors = []
    for device in (gpu, cpu):
        with pytest.raises(Exception, match="singular") as caught:
            solver.solve(device.put(np.zeros((3, 3))), device.put(np.ones(3))).result(WAIT_S)
        errors.append(caught.value)
        with pytest.raises(InvalidArgument) as caught:
            solver.solve(device.put(np.zeros((3, 2))), device.put(np.ones(3)))
        errors.append(caught.value)
    assert [type(one) for one in errors[:2]] == [type(one) for one in errors[2:]]
    assert [type(one.__cause__) for one in errors[::2]] == [SingularMatrix] * 2
    assert gpu.put([1.0, 2.0]).sum().get() == 3


def test_a_thing_that_the_host_keeps_serves_later_messages(
    helped_system: System, gpu: Device
) -> None:
    k, v, q = (_values((1, 2, 5, 8), "float32") * n for n in (1, 2, 3))
    cache = attention.KVCache(gpu, heads=2, width=8, pages=4, page_size=2, dtype="float32")
    cache.append(gpu.put(k), gpu.put(v))
    before = cache.attend(gpu.put(q)).y.get()
    logits = q @ np.swapaxes(k, 2, 3) / np.sqrt(8)
    logits = np.where(np.tri(5, dtype=bool), logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    exact = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(before, exact, rtol=2e-4, atol=2e-4)
    cache.checkpoint().result(WAIT_S)
    with pytest.raises(ContextLost):
        helped_system.inject("kill", gpu).result(WAIT_S)
    np.testing.assert_array_equal(cache.attend(gpu.put(q)).y.get(), before)


def test_what_the_host_has_made_is_made_again_after_a_loss() -> None:
    require("wgpu")
    with System("wgpu", devices=1, fallback="host") as lab:
        gpu = lab.devices[0]
        generator = rng.Generator(gpu, 11)
        drawn = generator.poisson(4.0, (20,))
        y = fft.dct(gpu.put(_values((6,))))
        kept = y.get(), drawn.get()
        with pytest.raises(ContextLost):
            lab.inject("kill", gpu).result(WAIT_S)
        assert (y.get().tobytes(), drawn.get().tobytes()) == tuple(one.tobytes() for one in kept)
        with System("host", devices=1) as other:
            again = rng.Generator(other.devices[0], 11)
            first, second = again.poisson(4.0, (20,)).get(), again.poisson(4.0, (5,)).get()
        np.testing.assert_array_equal(first, kept[1])
        np.testing.assert_array_equal(generator.poisson(4.0, (5,)).get(), second)


def test_the_timeline_and_the_tree_tell_what_ran_on_the_host(
    helped_system: System, gpu: Device, tmp_path: Path
) -> None:
    timeline = views.timeline(helped_system)
    until = time.monotonic() + WAIT_S
    text, x = "", gpu.put(_values((1000,)))
    while not ("R2R on host" in text and "Reduce" in text) and time.monotonic() < until:
        fft.dct(x).get()
        x.sum().get()
        repr(timeline)  # who looks has the work traced
        time.sleep(0.1)
        text = timeline.export(tmp_path / "trace.json").read_text()
    assert "R2R on host" in text
    assert "Reduce on host" not in text
    while "messages on host" not in str(helped_system.tree()) and time.monotonic() < until:
        time.sleep(0.1)
    assert "bytes copied for these" in str(helped_system.tree())


@pytest.mark.parametrize("library", sorted(APART))
def test_what_is_about_the_device_itself_has_no_help(library: str) -> None:
    assert not [row for row in helped() if row.startswith(f"{library}.")]
    assert [row for row in HOST if row.startswith(f"{library}.")]


def test_what_cannot_be_helped_is_refused_by_name_all_the_same(gpu: Device) -> None:
    with pytest.raises(UnsupportedDtype, match=r"no event\.Record") as caught:
        event.record(gpu)
    assert "fallback" not in str(caught.value)
    source = 'extern "C" __global__ void f(float* x) { x[0] = 1; }'
    with pytest.raises((UnsupportedDtype, InvalidArgument), match=r"wgsl|WGSL"):
        jit.compile(gpu, source, "f").result(WAIT_S)


def test_without_it_a_refusal_names_it_as_the_remedy() -> None:
    require("wgpu")
    with System("wgpu", devices=1) as lab:
        gpu = lab.devices[0]
        x = gpu.put(np.ones(4))
        makes: list[Callable[[Any], Any]] = [fft.dct, array.exp, lambda x: solver.inv(x[None, :1])]
        for make in makes:
            with pytest.raises(UnsupportedDtype, match='fallback="host"'):
                make(x).result(WAIT_S)
        with pytest.raises(UnsupportedDtype) as caught:
            event.record(gpu)
        assert "fallback" not in str(caught.value)


@pytest.mark.parametrize("fallback", ["cuda", "", True, 1])
def test_what_is_no_fallback_is_refused(fallback: Any) -> None:
    with pytest.raises(InvalidArgument, match="fallback is host, not"):
        System("host", devices=1, fallback=fallback)


def test_a_backend_that_takes_no_fallback_refuses_it_when_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InvalidArgument, match="host takes no fallback"):
        System("host", devices=1, fallback="host")
    with pytest.raises(InvalidArgument, match="cuda takes no fallback"):
        accepted("host", "cuda", "cuda", cuda)
    monkeypatch.setattr(cuda, "available", lambda: "no card")
    monkeypatch.setattr(wgpu, "has_hardware", lambda: True)
    monkeypatch.setattr(wgpu, "available", lambda: None)
    assert accepted("host", "auto", *backends.load("auto")) == "host"
    monkeypatch.setattr(wgpu, "has_hardware", lambda: False)
    assert not accepted("host", "auto", *backends.load("auto"))


def test_an_adapter_without_wide_numbers_leaves_those_to_the_host() -> None:
    lacking = table({"float64", "int64", "uint64"})
    for row in ("array.Binary", "rng.Uniform", "fft.C2C"):
        missing = HOST[row] - lacking[row]
        assert missing
        assert missing <= helped()[row]
