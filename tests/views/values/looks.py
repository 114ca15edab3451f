"""Made-up looks at an array."""

from collections.abc import Iterator

from accel_lab.compute.events.samples import ValuesSeen

AT = 1_700_000_000.0


def look(number: int, *, name: str = "w", nans: int = 0, finite: bool = True) -> ValuesSeen:
    """Return a look at 100 elements whose range narrows."""
    return ValuesSeen(
        at=AT + number,
        device="cpu0",
        name=name,
        look=number,
        dtype="float32",
        shape=(10, 10),
        nans=nans,
        infs=0 if finite else 100 - nans,
        least=-3 / number if finite else None,
        most=3 / number if finite else None,
        mean=0.25 / number if finite else None,
        counts=(10, 20, 60 - nans, 10, 0, 0) if finite else (),
        cell=7,
    )


def looks(until: int, *, name: str = "w") -> Iterator[ValuesSeen]:
    """Yield the looks up to one."""
    for number in range(1, until + 1):
        yield look(number, name=name)
