"""What a timeline draws beside the slices: waits, levels, queues, and how messages hang together.

Runs in the notebook's process.
"""
