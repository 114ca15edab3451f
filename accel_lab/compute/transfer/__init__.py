"""`put`, `get`, checkpoints.

Runs in the notebook's process.
"""
