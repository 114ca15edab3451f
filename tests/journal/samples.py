"""Groups to keep, and parts as a device's record has them."""

from collections.abc import Iterable

from hypothesis import strategies as st

from accel_lab.compute.lineage.content_store import key_of
from accel_lab.journal.stores.group import Group

SESSION = "lab-1"


def header(session: str = SESSION) -> Group:
    return Group(0, session, "", 1.5, 1, b"\x81\xa6schema\x01", 0, 1)


def group(
    position: int,
    data: bytes = b"\x92\x01\x02",
    *,
    session: str = SESSION,
    keys: tuple[str, ...] = (),
) -> Group:
    return Group(
        0,
        session,
        "gpu0",
        2.5 + position,
        3,
        data,
        position,
        2,
        1,
        position or None,
        keys,
    )


def content(size: int, seed: int = 0) -> tuple[str, bytes]:
    data = bytes((seed + i * 7) % 251 for i in range(min(size, 1 << 16)))
    data = (data * (size // max(len(data), 1) + 1))[:size]
    return key_of(data), data


def unnumbered(groups: Iterable[Group]) -> list[Group]:
    return [one.numbered(0) for one in groups]


keys = st.binary(min_size=1, max_size=8).map(key_of)
groups = st.builds(
    Group,
    number=st.just(0),
    session=st.just(SESSION),
    device=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
    at=st.floats(0, 4e9),
    count=st.integers(0, 2**31 - 1),
    data=st.binary(max_size=2000),
    position=st.just(0),
    entries=st.integers(0, 2**31 - 1),
    generation=st.integers(1, 2**31 - 1),
    cell=st.none() | st.integers(0, 2**31 - 1),
    keys=st.lists(keys, max_size=3).map(tuple),
)
