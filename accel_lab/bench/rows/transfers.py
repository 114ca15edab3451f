"""Arrays to the device and back, against the plain way and against the limit of the link."""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from accel_lab.bench.effort import Effort
from accel_lab.bench.peer import Peer
from accel_lab.bench.rounds import compare
from accel_lab.bench.row import Budget, Row
from accel_lab.system import System

GIB = 1 << 30


def upload(lab: System, peer: Peer, effort: Effort) -> list[Row]:
    """Put an array that lies in lab memory, and one that does not."""
    device, nbytes = peer.device, effort.nbytes[peer.backend]
    in_lab = lab.empty(nbytes, np.uint8)
    in_lab[:] = 1
    anywhere = np.ones(nbytes, np.uint8)
    return [
        _row(
            peer,
            effort,
            "upload-lab",
            title="upload from lab memory",
            theirs="upload_limit",
            ours=lambda: device.put(in_lab).result(),
            budget=Budget(0.95, "at least"),
        ),
        _row(
            peer,
            effort,
            "upload-any",
            title="upload of any array",
            theirs="upload",
            ours=lambda: device.put(anywhere).result(),
            budget=Budget(2.5, "at least"),
        ),
    ]


def download(_: System, peer: Peer, effort: Effort) -> list[Row]:
    """Get a buffer; the array that comes lies in lab memory and is the user's own."""
    device, nbytes = peer.device, effort.nbytes[peer.backend]
    ref = device.put(np.ones(nbytes, np.uint8))
    return [
        _row(
            peer,
            effort,
            "download-lab",
            title="download into lab memory",
            theirs="download_limit",
            ours=lambda: device.get(ref).result(),
            budget=Budget(0.95, "at least"),
        ),
        _row(
            peer,
            effort,
            "download-any",
            title="download to an array",
            theirs="download",
            ours=lambda: device.get(ref).result(),
            budget=Budget(5.0, "at least"),
        ),
    ]


def _row(
    peer: Peer,
    effort: Effort,
    name: str,
    *,
    title: str,
    theirs: str,
    ours: Callable[[], object],
    budget: Budget,
) -> Row:
    nbytes = effort.nbytes[peer.backend]

    def copy() -> float:
        begin = perf_counter()
        ours()
        return nbytes / GIB / (perf_counter() - begin)

    found = compare(
        lambda: nbytes / GIB / float(peer(f"transfer.{theirs}", nbytes)),
        copy,
        effort.rounds,
        warm_up=2,
    )
    return Row(
        name=name,
        group=name.partition("-")[0],
        title=f"{title}, {nbytes >> 20} MiB",
        unit="GiB/s",
        peer=peer("transfer.labels")["limit" if theirs.endswith("limit") else theirs],
        budget=budget if peer.backend == "cuda" else None,
        **found._asdict(),
    )
