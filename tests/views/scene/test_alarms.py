"""What a card that is not well has everybody hear."""

from accel_lab.compute.events.card_alarms import Alarms
from accel_lab.compute.events.cards import CardAlarm
from accel_lab.compute.events.samples import HealthSampled, Reading
from accel_lab.views.scene.gauges import Gauges
from accel_lab.views.scene.observer import observer_of
from tests.views.made_up import lab as made_up
from tests.views.scene.test_gauges import Nvml


def sample(
    throttling: float | None = 0, why: str = "none", **counts: float | None
) -> HealthSampled:
    readings = [Reading("throttling", throttling, why=why)]
    readings += [Reading(name.replace("_", " "), count) for name, count in counts.items()]
    return HealthSampled(source="gpu0", model="H100", readings=tuple(readings))


def told(*samples: HealthSampled) -> list[tuple[str, str]]:
    alarms = Alarms()
    return [(one.alarm, one.detail) for each in samples for one in alarms.look(each)]


def test_throttling_is_told_when_it_begins_and_not_while_it_lasts() -> None:
    hot = sample(1, "too hot (hardware)")
    assert told(sample(), hot, hot, sample(), hot) == [("throttled", "too hot (hardware)")] * 2
    assert told(hot, hot) == [("throttled", "too hot (hardware)")]


def test_memory_errors_are_told_when_they_grow() -> None:
    assert told(
        sample(ECC_uncorrected=3), sample(ECC_uncorrected=3), sample(ECC_uncorrected=5)
    ) == [("memory errors", "ECC uncorrected: 5, before 3")]
    assert told(sample(remapped_rows=1), sample(remapped_rows=2)) == [
        ("remapped rows", "remapped rows: 2, before 1")
    ]


def test_what_is_not_known_is_no_alarm() -> None:
    unknown = sample(None, "not supported", ECC_uncorrected=None)
    assert told(sample(ECC_uncorrected=0), unknown, sample(ECC_uncorrected=9), unknown) == []


def test_a_system_publishes_the_alarms_of_its_cards() -> None:
    lab = made_up(1)
    lab.backend = "cuda"  # type: ignore[attr-defined]
    observer = observer_of(lab)
    nvml = Nvml()
    observer._gauges = Gauges(nvml)
    observer.want(observer, ["health"])
    with observer.lock:
        observer.look()
        nvml.reasons = 0x40
        nvml.remapped += 1
        for _ in range(3):
            observer._sampled.clear()
            observer.look()
            reader = observer._gauges._reader
            assert reader is not None
            reader.join()
    found = [(one.device, one.alarm) for one in lab.events.history(CardAlarm)]
    assert found == [("gpu0", "throttled"), ("gpu0", "remapped rows")]
