"""Handles of what is no array, in a copy of the project that has the library `recurrent`."""

import pickle
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accel_lab.libraries.recurrent import Step
from IPython.core.interactiveshell import InteractiveShell

from accel_lab import System, blas, load_ipython_extension
from accel_lab.compute.device import Device
from accel_lab.errors import DependencyFailed, InvalidArgument, NotAnArray, StaleRef
from accel_lab.journal.journal import Journal
from accel_lab.libraries import recurrent
from tests.libraries.recurrent.given import BACKEND, WAIT, W, X, after, gpu, lab, row

__all__ = ["gpu", "lab"]


def test_a_state_is_made_written_and_read(gpu: Device) -> None:
    x = gpu.put(X)
    state = recurrent.make_state(gpu.put(W))
    first, second = recurrent.step(state, x), recurrent.step(state, x)
    np.testing.assert_allclose(first.get(), after(1))
    np.testing.assert_allclose(second.get(), after(2))
    np.testing.assert_allclose(recurrent.blend(state, like=x).get(), after(2))
    assert state.result(WAIT) is state
    assert state.kind == "RnnState"


def test_a_handle_is_no_array_and_says_so(gpu: Device) -> None:
    state = recurrent.make_state(gpu.put(W))
    uses: list[Callable[[Any], object]] = [
        lambda one: one + 1,
        lambda one: 2 * one,
        lambda one: one @ one,
        lambda one: one[0],
        lambda one: one < 1,
        lambda one: -one,
        lambda one: one.shape,
        lambda one: one.dtype,
        lambda one: one.get(),
        lambda one: one.nbytes,
        lambda one: one.sum(),
        np.asarray,
        len,
        list,
        float,
    ]
    for use in uses:
        with pytest.raises(NotAnArray, match=rf"RnnState #{state.id} of {gpu.name} is no array"):
            use(state)
    assert isinstance(NotAnArray("x"), TypeError | AttributeError)
    assert not hasattr(state, "shape")
    with pytest.raises(NotAnArray, match="no attribute 'nonsense'"):
        _ = state.nonsense
    assert state == state  # noqa: PLR0124 - that is asked
    assert len({state, recurrent.make_state(gpu.put(W))}) == 2
    with pytest.raises(InvalidArgument, match="Handle"):
        gpu.get(state).result(WAIT)
    with pytest.raises(TypeError, match="make another"):
        pickle.dumps(state)


def test_it_reads_well(gpu: Device) -> None:
    state = recurrent.make_state(gpu.put(W))
    state.result(WAIT)
    assert re.fullmatch(
        rf"<Handle RnnState on {gpu.name}, handle {state.id} of generation 1, made>", repr(state)
    )
    html = state._repr_html_()
    assert state.durability == "replayable"
    for text in ("RnnState", "recurrent", "160 B", gpu.name, "made", "durability"):
        assert text in html, html
    state.free()
    assert "freed" in repr(state)
    message = recurrent.MakeState(gpu.put(W))
    assert "RnnState" in message._repr_html_()
    assert "shape" not in html


def test_wrong_operands_are_refused_by_name(gpu: Device) -> None:
    x, state = gpu.put(X), recurrent.make_state(gpu.put(W))
    cache = recurrent.make_cache(gpu, 4)
    sent = gpu.ping().result(WAIT)
    wrong: Any = cache
    state_of, cached = r"Step.state must be a Handle\[RnnState\], not ", f"#{cache.id} KVCache"
    for call, text in (
        (lambda: recurrent.step(wrong, x), f"{state_of}{cached}; MakeState makes one"),
        (lambda: recurrent.step(x, x), rf"{state_of}#{x.id} float64\[4\]"),
        (lambda: recurrent.step(state, state), f"Step.x must be an AccelRef, not #{state.id} RnnS"),
        (lambda: recurrent.step(7, x), "an operand must be an AccelRef, not a int"),
        (lambda: gpu.ask(Step(7, x)), f"{state_of}int"),
        (lambda: gpu.ask(Step(None, x)), f"{state_of}NoneType"),
        (lambda: recurrent.blend(state, wrong, like=x), f"Blend.states must be .*{cached}"),
        (lambda: recurrent.blend(state, first=wrong, like=x), f"Blend.first must be .*{cached}"),
        (lambda: blas.gemm(state, x), f"Gemm.a must be an AccelRef, not #{state.id} RnnState"),
        (lambda: x + state, "RnnState"),
        (lambda: recurrent.make_state(x), "square"),
    ):
        with pytest.raises((InvalidArgument, TypeError), match=text):
            call()
    assert sent is None
    np.testing.assert_allclose(recurrent.step(state, x).get(), after(1))


def test_stale_freed_and_foreign_ones_are_refused(lab: System, gpu: Device) -> None:
    x, state = gpu.put(X), recurrent.make_state(gpu.put(W))
    state.free()
    with pytest.raises(StaleRef, match="was freed"):
        recurrent.step(state, x)
    with System(BACKEND) as other:
        there = other.devices[0]
        foreign = recurrent.make_state(there.put(W))
        with pytest.raises(InvalidArgument, match="another system"):
            gpu.ask(Step(foreign, x))
    with pytest.raises(InvalidArgument, match="closed"):
        gpu.ask(Step(foreign, x))
    gone = recurrent.make_state(gpu.put(W))
    gpu.run(id, gone).result(WAIT)  # it may have changed it
    gpu.replace()
    with pytest.raises(StaleRef, match="pure=True"):
        recurrent.step(gone, x).result(WAIT)
    lab.check()


def test_one_of_several_results_is_a_handle(gpu: Device) -> None:
    w, h = gpu.put(W), gpu.put(X)
    made = recurrent.make_both(w, h)
    assert (made.state.kind, made.cache) == ("RnnState", None)
    assert made.h.shape == (4,)
    np.testing.assert_allclose(recurrent.step(made.state, h).get(), after(1, X))
    np.testing.assert_allclose(made.h.get(), X)
    more = recurrent.make_both(w, h * 2, cached=True)
    recurrent.append(more.cache, gpu.put(W)).result(WAIT)
    np.testing.assert_allclose(recurrent.read_cache(more.cache).get(), W)
    gpu.replace()
    np.testing.assert_allclose(recurrent.read_cache(more.cache).get(), W)
    np.testing.assert_allclose(recurrent.step(made.state, h).get(), after(2, X))
    np.testing.assert_allclose(recurrent.step(more.state, h).get(), after(1, 2 * X))


def test_it_may_come_of_what_has_no_shape_yet(gpu: Device) -> None:
    cache = recurrent.make_cache(gpu, 4)
    recurrent.append(cache, gpu.put(W))
    state = recurrent.make_state(recurrent.read_cache(cache))
    np.testing.assert_allclose(recurrent.step(state, gpu.put(X)).get(), after(1))
    gpu.run(time.sleep, 0.5)  # so that it is not known by the next line
    recurrent.append(cache, gpu.put(W))
    wrong = recurrent.make_state(recurrent.read_cache(cache))
    behind = recurrent.step(wrong, gpu.put(X))
    with pytest.raises(InvalidArgument, match="square"):
        wrong.result(WAIT)
    with pytest.raises(DependencyFailed):
        behind.result(WAIT)


def test_the_memory_view_has_it_with_size_and_name(gpu: Device) -> None:
    before = gpu.resident.used_bytes
    state = recurrent.make_state(gpu.put(W))
    state.result(WAIT)
    seen = row(gpu, state)
    assert (seen.nbytes, seen.dtype) == (160, "RnnState")
    assert re.fullmatch(r"MakeState #\d+", seen.made_by)
    assert "state" in " ".join(seen.kept_by)
    assert "RnnState" in repr(seen)
    assert "[" not in repr(seen).split("RnnState")[1][:2]
    assert gpu.resident.used_bytes >= before + 160


def test_one_that_grows_is_counted_as_it_grows(lab: System, gpu: Device) -> None:
    cache, rows = recurrent.make_cache(gpu, 4), gpu.put(np.ones((256, 4)))
    rows.result(WAIT)
    before = gpu.resident.used_bytes
    for count in range(1, 6):
        recurrent.append(cache, rows).result(WAIT)
        assert row(gpu, cache).nbytes == count * 8192
        assert gpu.resident.used_bytes == before + count * 8192
    recurrent.append(cache, rows, slow=True).result(WAIT)
    assert row(gpu, cache).nbytes == 6 * 8192
    cache.free()
    gpu.ping().result(WAIT)
    time.sleep(0.2)
    assert gpu.resident.used_bytes == before
    lab.check()


def test_several_threads_step_one_each_and_all(gpu: Device) -> None:
    x = gpu.put(X)
    shared, wrong = recurrent.make_cache(gpu, 4), []

    def work() -> None:
        try:
            state = recurrent.make_state(gpu.put(W))
            for count in range(1, 30):
                found = recurrent.step(state, x)
                recurrent.append(shared, x.reshape(1, 4))
                np.testing.assert_allclose(found.get(), after(count))
        except BaseException as error:  # noqa: BLE001 - told by whoever joins
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(WAIT)
    assert not wrong, wrong
    assert recurrent.read_cache(shared).shape == (4 * 29, 4)


def test_a_function_gets_the_thing_itself(gpu: Device) -> None:
    state = recurrent.make_state(gpu.put(W))
    x = gpu.put(X)
    recurrent.step(state, x)

    def look(thing: Any, factor: float) -> Any:
        return type(thing).__name__, thing.h * factor

    name, h = gpu.run(look, state, 2.0, pure=True).result(WAIT)
    assert name == "State"
    np.testing.assert_allclose(h.get(), 2 * after(1))
    assert state.durability == "replayable"
    gpu.replace()
    np.testing.assert_allclose(recurrent.step(state, x).get(), after(2))


def test_the_journal_replays_makers_and_writers(tmp_path: Path) -> None:
    with System(BACKEND, journal=tmp_path / "j.sqlite", results="digests") as lab:
        gpu = lab.devices[0]
        x = gpu.put(X)
        state, cache = recurrent.make_state(gpu.put(W)), recurrent.make_cache(gpu, 4)
        recurrent.step(state, x).result(WAIT)
        recurrent.step(state, x).result(WAIT)
        recurrent.append(cache, x.reshape(1, 4))
        recurrent.read_cache(cache).result(WAIT)
        recurrent.make_both(gpu.put(W), x).state.result(WAIT)
        gpu.ping().result(WAIT)
    journal = Journal.open(tmp_path / "j.sqlite")
    with System(BACKEND, journal=None) as lab:
        texts = [str(entry) for entry in journal if entry.library == "recurrent"]
        assert re.search(rf"-> #{state.id} RnnState$", texts[0]), texts[0]
        report = journal.replay(lab)
        assert report.ok, report
        assert report.uncompared == 0
        assert report.compared == 3 + 2 + 1 + 1 + 1  # puts, steps, a view, rows, h


def test_a_gpu_cell_gets_the_thing_itself(gpu: Device) -> None:
    """What it binds of it is the thing's own; the handle goes on."""
    shell: Any = InteractiveShell.instance()
    state, x = recurrent.make_state(gpu.put(W)), gpu.put(X)
    recurrent.step(state, x)
    shell.user_ns |= {"state": state, "here": gpu}
    load_ipython_extension(shell)
    done = shell.run_cell("%%gpu here\nkind = type(state).__name__\nh = state.h * 2")
    done.raise_error()
    assert shell.user_ns["kind"] == "State"
    np.testing.assert_allclose(shell.user_ns["h"].get(), 2 * after(1))
    assert shell.user_ns["state"] is state
    np.testing.assert_allclose(recurrent.step(state, x).get(), after(2))
    assert state.durability == "lost on fault"
