"""Made-up links: two cards by NVLink, and a third one far from both."""

from collections.abc import Sequence
from itertools import permutations

from accel_lab.compute.events.samples import PeerLook, PeersSampled

AT = 1_700_000_000.0
GPUS = ("gpu0", "gpu1", "gpu2")


def peers(
    speeds: dict[tuple[str, str], float] | None = None,
    stale: Sequence[tuple[str, str]] = (),
    at: float = AT,
) -> PeersSampled:
    """Return a look at the three, with these figures."""
    looks = []
    for pair in permutations(GPUS, 2):
        near = "gpu2" not in pair
        look = PeerLook(*pair, "18 NVLink" if near else "SYS, not reachable", near)
        if speed := (speeds or {}).get(pair):
            way = "ipc" if near else "staged"
            look = PeerLook(*pair, look.link, near, speed, 64 << 20, way, pair in stale)
        looks.append(look)
    islands = (("gpu0", "gpu1"), ("gpu2",))
    return PeersSampled(at=at, devices=GPUS, islands=islands, links=tuple(looks))
