"""What an append has written that never came to its commit."""

from collections.abc import Callable

from accel_lab.journal.stores.cells.cells import Cells
from accel_lab.journal.stores.cells.records import content_of


def clear(cells: Cells, place: Callable[[str], str], token: str) -> None:
    """Take away the data under a token, and the contents that are not in use.

    Parameters:
        place: returns the whole name of a partition.
    """
    data, brought = place(f"data/{token}"), place(f"content/{token}")
    cells.delete(data, cells.keys(data))
    used: dict[str, bool] = {}
    unused: list[str] = []
    for piece in cells.keys(brought):
        key = piece.partition(".")[0]
        if key not in used:
            known = cells.get(place("contents"), key)
            used[key] = known is not None and content_of(known, cells.name).token == token
        if not used[key]:
            unused.append(piece)
    cells.delete(brought, unused)
