"""One card: its memory, streams, clock and faults.

Runs in a context's process; the notebook's asks `cards` alone, which opens no device.
"""
