"""One folder per vendor, all with the same files; a folder here is a backend.

Only the process that opens a device imports what drives it; the notebook's reads `__init__.py`
and `support.py` alone.
"""
