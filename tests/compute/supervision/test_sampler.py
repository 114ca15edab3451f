"""What is known of a device's work, without a device."""

from accel_lab.compute.events.samples import Slice, WorkTraced
from accel_lab.compute.supervision.context_health import ContextHealth
from accel_lab.compute.supervision.sampler import DeviceSampler
from accel_lab.compute.wire.side_channel import Downward, Look, Traced

RUNS = Slice(7, "Run", "run", "function", 1.0, None)
DONE = Slice(6, "Gemm", "blas", "kernel", 0.5, 1.0)


class Device:
    """A device that remembers what it was told."""

    name = "cpu0"
    generation = 1

    def __init__(self) -> None:
        self.health = ContextHealth()
        self.told: list[Downward] = []

    def tell(self, packet: Downward) -> None:
        self.told.append(packet)


def test_an_answer_in_parts_is_one_fact() -> None:
    device = Device()
    sampler = DeviceSampler(device)
    assert sampler.look(memory=False, work=True) == []
    assert device.told == [Look(memory=False, work=True)]
    sampler.heard(Traced([DONE], [], 0, last=False))
    assert sampler.look(memory=False, work=False) == []
    sampler.heard(Traced([DONE], [RUNS], 3, last=True))
    (traced,) = sampler.look(memory=False, work=False)
    assert isinstance(traced, WorkTraced)
    assert (traced.done, traced.running, traced.dropped) == ((DONE, DONE), (RUNS,), 3)
    assert device.told == [Look(memory=False, work=True)]


def test_a_context_that_is_lost_leaves_nothing_running_even_if_none_follows() -> None:
    sampler = DeviceSampler(Device())
    sampler.heard(Traced([], [RUNS], 0, last=True))
    sampler.heard(Traced([DONE], [], 0, last=False))
    sampler.lost()
    *_, last = sampler.look(memory=False, work=False)
    assert isinstance(last, WorkTraced)
    assert last.running == ()
    sampler.heard(Traced([], [], 0, last=True))  # of the next context
    (traced,) = sampler.look(memory=False, work=False)
    assert isinstance(traced, WorkTraced)
    assert traced.done == ()
