"""What a context reads of memory that the notebook's own CUDA has made, and how long that lives."""

from pathlib import Path

import pytest

from tests.compute.own_cuda.conftest import OPENED, Reading, run

pytestmark = pytest.mark.timeout(150)  # long: it begins before files of short tests


def test_memory_is_the_pools_again_when_the_context_has_closed_it(driver: Path) -> None:
    """The host's context refuses to read it, so that it is copied, and answers all the same."""
    run(
        driver,
        OPENED
        + """
with System("host") as lab:
    gpu, ipc_memory = lab.devices[0], on_card(lab)
    x = Pooled(values)
    memory = weakref.ref(x.data.mem)
    put(x, 3)
    view = Pooled(values)
    view.base, view.data = x, x.data
    put(view)
    del view
    assert len(ipc_memory) == 1
    lab.check()
    del x
    soon(lambda: memory() is None)
    soon(lambda: not gpu.in_flight)
    assert len(ipc_memory) == 0
    lone = Card(values)
    told_of = weakref.ref(lone)
    put(lone)
    del lone
    soon(lambda: told_of() is None)
    lab.check()
    names = [entry.name for entry in lab.journal]
    assert "CopyIn" in names and "Unmap" not in names, names
""",
    )


def test_memory_outlives_no_context_that_had_it_open(driver: Path) -> None:
    """A loss and a suspension close it; what died meanwhile wakes no device."""
    run(
        driver,
        OPENED
        + """
with System("host") as lab:
    gpu, ipc_memory = lab.devices[0], on_card(lab)
    x = Pooled(values)
    memory = weakref.ref(x.data.mem)
    put(x)
    try:
        lab.inject("poison").result(60)
    except Exception as error:
        assert type(error).__name__ == "ContextLost", error
    soon(lambda: len(ipc_memory) == 0)
    put(x)
    assert len(ipc_memory) == 1
    gpu.suspend()
    soon(lambda: len(ipc_memory) == 0)
    del x
    soon(lambda: memory() is None)
    assert gpu.state == "suspended"
    x = Pooled(values)
    memory = weakref.ref(x.data.mem)
    put(x)
    assert gpu.state == "running"
    assert len(ipc_memory) == 1
assert len(ipc_memory) == 0
del x
assert memory() is None
""",
    )


def test_an_allocation_is_opened_once_and_closed_before_it_is_freed(reading: Reading) -> None:
    reading(
        """
with System("reading", devices=1) as lab:
    gpu, ipc_memory = lab.devices[0], on_card(lab)
    x = fresh(3)
    for turn in range(4):
        x.array[:] = turn
        ref = gpu.put(x)
        x.array[:] = -1  # it has been read
        assert (ref.get(timeout_s=60) == turn).all()
        assert len(marks()) == 1
    assert ref.durability == "lost on fault" and "own CUDA" in ref.durability.why
    part = OfMemory(x.data.mem, slice(500, None))
    part.array[:] = 8
    assert gpu.put(part).get(timeout_s=60).tolist() == [8] * 500
    assert len(marks()) == 1
    del x
    assert (gpu.put(part).get(timeout_s=60) == 8).all()
    assert len(marks()) == len(living) == 1
    del part
    soon(lambda: not living)
    assert not marks()
    lone = fresh(5)
    untold = Card(lone.array)
    untold.memory = lone.data.mem
    del lone
    assert (gpu.put(untold).get(timeout_s=60) == 5).all()
    soon(lambda: not marks())
    del untold
    soon(lambda: not living)
    many = [fresh(i) for i in range(12)]
    for _ in range(2):
        for i, one in enumerate(many):
            assert (gpu.put(one).get(timeout_s=60) == i).all()
        soon(lambda: len(marks()) == len(ipc_memory) == 8)
    lab.check()
del many, one
assert not living and not freed_while_open, (living, freed_while_open)
"""
    )


def test_who_does_not_wait_has_a_buffer_that_is_not_done(reading: Reading) -> None:
    """The memory is kept until it has been read; the first put of an allocation waits."""
    reading(
        """
gate = FOLDER / "gate"
with System("reading", devices=1) as lab:
    gpu, ipc_memory = lab.devices[0], on_card(lab)
    x, y = fresh(3), fresh(4)
    gate.touch()
    try:
        gpu.put(x, timeout_s=0.05, non_blocking=True)
    except TimeoutError:
        pass
    else:
        raise AssertionError("it is not open, so that it is waited for")
    gate.unlink()
    gpu.put(x), gpu.put(y, non_blocking=True)
    gate.touch()
    refs = [gpu.put(one, non_blocking=True) for one in (x, y, x)]
    assert refs[0].shape == (1000,) and not any(ref.done for ref in refs)
    del x, y
    gc.collect()
    assert len(living) == 2
    gate.unlink()
    for ref, value in zip(refs, (3, 4, 3)):
        assert (ref.get(timeout_s=60) == value).all()
    soon(lambda: not living and not marks())
    x = fresh(5)
    gpu.put(x)
    gate.touch()
    ref = gpu.put(x, non_blocking=True)
    gpu.replace()
    gate.unlink()
    try:
        ref.result(60)
    except Exception as error:
        assert type(error).__name__ == "ContextReplaced", error
    else:
        raise AssertionError
    assert (gpu.put(x, non_blocking=True).get(timeout_s=60) == 5).all()
    small = gpu.put(np.arange(3), non_blocking=True)
    assert small.get(timeout_s=60).tolist() == [0, 1, 2]
assert not freed_while_open, freed_while_open
"""
    )


def test_what_was_not_read_in_time_lives_until_the_context_has_come_to_it(reading: Reading) -> None:
    """The put is taken back at once, and its buffer is never there."""
    reading(
        """
gate = FOLDER / "gate"
with System("reading", devices=1) as lab:
    gpu, ipc_memory = lab.devices[0], on_card(lab)
    gate.touch()
    told, untold = fresh(3), fresh(4)
    other = Card(untold.array)
    other.memory = untold.data.mem
    for one in told, other:
        try:
            gpu.put(one, timeout_s=0.05)
        except TimeoutError as error:
            assert str(error) == "cpu0 did not come to the array on the card in 0.05 s", error
        else:
            raise AssertionError
    del told, untold, other, one
    gc.collect()
    assert len(living) == 2
    gate.unlink()
    soon(lambda: not living and not marks())
    assert (gpu.put(fresh(5)).get(timeout_s=60) == 5).all()
    gpu.ping().result(60)
    assert len(gpu.resident) == 0
assert not freed_while_open, freed_while_open
"""
    )


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_freed_while_a_context_has_it_open(reading: Reading, seed: int) -> None:
    """Whatever is put, deleted, killed, suspended and taken back, in two threads."""
    reading(
        f"SEED = {seed}\n"
        """
from accel_lab.errors import AccelError
wrong, faults = [], []

def use(gpu, seed):
    pick, held = random.Random(seed), []
    for turn in range(120):
        try:
            act = pick.random()
            if act < 0.3 or not held:
                held.append(fresh(pick.randrange(1000)))
            elif act < 0.4:
                held.append(OfMemory(pick.choice(held).data.mem, slice(0, 10)))
            elif act < 0.6:
                held.pop(pick.randrange(len(held)))
            elif act < 0.7:
                lone = Card(held[-1].array)
                lone.memory = held[-1].data.mem
                gpu.put(lone)
                del lone
            else:
                one = pick.choice(held)
                if not (gpu.put(one).get(timeout_s=60) == one.array).all():
                    wrong.append((seed, turn))
                del one
        except AccelError as error:
            faults.append(type(error).__name__)
            del error

with System("reading", devices=1, max_restarts=1000) as lab:
    gpu, ipc_memory = lab.devices[0], on_card(lab)
    threads = [threading.Thread(target=use, args=(gpu, 10 * SEED + i)) for i in range(2)]
    for thread in threads:
        thread.start()
    pick = random.Random(-SEED)
    while any(thread.is_alive() for thread in threads):
        time.sleep(pick.random() / 4)
        try:
            pick.choice([gpu.replace, gpu.suspend, gc.collect])()
        except AccelError as error:
            faults.append(type(error).__name__)
    gc.collect()
    gpu.ping().result(60)
    soon(lambda: not living and not marks())
    assert len(ipc_memory) == 0
gc.collect()
assert not living and not freed_while_open and not wrong, (living, freed_while_open, wrong)
"""
    )


@pytest.mark.parametrize("last", ["x", "lab"])
def test_a_process_ends_with_memory_that_a_context_has_open(reading: Reading, last: str) -> None:
    """Nobody has closed the system; its array may outlive it, or it the array."""
    reading(
        f"""
lab = System("reading", devices=1)
gpu, ipc_memory = lab.devices[0], on_card(lab)
x = fresh(3)
assert (gpu.put(x).get(timeout_s=60) == 3).all()
assert len(ipc_memory) == 1
sys.kept_to_the_end = {last}
"""
    )
