"""What the cuda backend is measured against: CuPy, called in the same process.

`backends/host/baseline` has the same files with the same functions. One that returns a `Call` only
prepares it; what measures by itself does so in seconds, because the way to it and back is none of
its cost. All work is on CuPy's current stream.

Runs in a context's process.
"""

from collections.abc import Callable
from typing import TypeAlias

Call: TypeAlias = tuple[str, Callable[[], object], Callable[[], object]]
"""What the call is called, the call, and what waits until all such calls are done."""
