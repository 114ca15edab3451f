"""A session that outlives its kernel: a folder from which the next one gets every name back.

Runs in the notebook's process.
"""
