"""Sizes as people read them, for the views.

`widgets/format.js` says the same in the browser; `tests/views/format_cases.json` holds both to it.
"""

from accel_lab.display.sizes import memory, size

__all__ = ["memory", "size"]
