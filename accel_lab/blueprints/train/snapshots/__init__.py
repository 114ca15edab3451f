"""What a trainer had after a step, kept in memory or on disk.

Runs in the notebook's process.
"""
