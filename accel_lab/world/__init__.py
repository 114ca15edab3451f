"""Several devices as one: collective operations, and arrays that have a part on each device.

Runs in the notebook's process.
"""
