"""What memory holds and which names keep it: `gpu.resident`, OutOfMemory's owners.

Runs in both.
"""
