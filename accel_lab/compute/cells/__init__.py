"""`%%gpu` cells: their namespace, what they take and what they change.

Runs in a context's process.
"""
