"""Explain a system's losses: which message caused each, remembered once found."""

import threading
from collections.abc import Mapping

from accel_lab.compute.device import Device
from accel_lab.journal.explanation import sanitizer
from accel_lab.journal.explanation.explain import Spare, explain
from accel_lab.journal.explanation.explanation import Explanation
from accel_lab.journal.journal import Journal
from accel_lab.journal.replay.replay import Lab


class Explainer:
    """Explains one loss at a time, for there is one spare.

    Parameters:
        indices: which of the backend's devices each of the system's is, by its name.
    """

    def __init__(self, indices: Mapping[str, int]) -> None:
        self._indices = indices
        self._trying = threading.Lock()
        self._known: dict[float, Explanation] = {}
        """The last culprit that was found, by the limit with which that was."""

    def explain(
        self,
        journal: Journal,
        system: Lab,
        device: Device | str | None,
        *,
        spare: Spare | None,
        timeout_s: float,
        sanitize: bool,
        allow_code: bool = False,
    ) -> Explanation:
        """Say which message ended a context, as `System.explain`; blocks until it is known."""
        with self._trying:
            known = self._known.get(timeout_s)
            found = explain(
                journal,
                system,
                device,
                timeout_s=timeout_s,
                allow_code=allow_code,
                spare=spare,
                known=known,
            )
            if found.culprit is None:
                return found
            self._known = {timeout_s: found}
        if not sanitize:
            offered = system.backend == "cuda" and sanitizer.find() is not None
            return found.with_memcheck(sanitizer.NOT_ASKED) if offered else found
        index = self._indices.get(found.device, 0)
        told = sanitizer.report(journal, system.backend, found.device, index)
        return found.with_memcheck(told)
