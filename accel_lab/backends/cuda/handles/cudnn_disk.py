"""cuDNN's plans on disk, so that another process has them without cuDNN's heuristics.

A plan is what the frontend serializes of a built graph. It is of one version of cuDNN and of the
frontend, and of one kind of card; `DiskCache` says whose files count.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from accel_lab.compute.machine.disk_cache import DiskCache, key_of

FORMAT = 1
"""Rises when a graph of the same key is built otherwise."""
PLAN = "plan.ubjson"


class PlansOnDisk:
    """The plans of one kind of card; for one thread.

    Parameters:
        cudnn: the frontend.
        folder: where the plans are, and with them those of others.
        of: of what they are, beside the versions: the card.
        is_captured: whether a stream is being captured, given its address.

    Attributes:
        refusal: what the frontend said last of a plan that it could not keep or load.
    """

    def __init__(
        self, cudnn: Any, folder: Path, of: object, is_captured: Callable[[int], bool]
    ) -> None:
        self._cudnn = cudnn
        self._cache = DiskCache(folder)
        self._of = FORMAT, cudnn.__version__, cudnn.backend_version(), of
        self._is_captured = is_captured
        self._loaded = self._unkept = 0
        self.refusal = ""

    def load(self, handle: int, key: object) -> Any:
        """Return a graph that can run; None without one, or where the frontend does not take it."""
        stream = self._cudnn.get_stream(handle)
        if self._is_captured(stream):  # what the frontend does below is not allowed meanwhile
            return None
        found = self._cache.get(self._name(key))
        if found is None or PLAN not in found:
            return None
        graph = self._cudnn.pygraph(handle=handle)
        # The frontend captures a call to warm it up. On no stream it makes one of its own for that;
        # ours would stay captured if it failed.
        self._cudnn.set_stream(handle=handle, stream=0)
        try:
            graph.deserialize(handle, [*found[PLAN]])
        except (self._cudnn.cudnnGraphNotSupportedError, RuntimeError) as error:
            self._refused(key, error)
            return None
        finally:
            self._cudnn.set_stream(handle=handle, stream=stream)
        self._loaded += 1
        return graph

    def keep(self, key: object, graph: Any) -> None:
        """Keep a built graph, in place of what could not be loaded; without a disk it is not."""
        try:
            plan = bytes(graph.serialize())
        except (self._cudnn.cudnnGraphNotSupportedError, RuntimeError) as error:
            self._refused(key, error)
            return
        with suppress(OSError):
            self._cache.put(self._name(key), {PLAN: plan}, anew=True)

    def statistics(self) -> Mapping[str, int]:
        """Count the plans that were loaded, and those that the frontend could not keep or load."""
        return {"plans from disk": self._loaded, "plans not kept": self._unkept}

    def _refused(self, key: object, error: Exception) -> None:
        self._unkept += 1
        self.refusal = f"{key}: {error}"

    def _name(self, key: object) -> str:
        return key_of(self._of, key)


def numbered(tensors: list[Any]) -> None:
    """Give the tensors of a graph the numbers by which a plan is given addresses: 1, 2, and on."""
    for number, tensor in enumerate(tensors, 1):
        tensor.set_uid(number)
