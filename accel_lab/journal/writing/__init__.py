"""The thread that gathers what devices were sent and commits it to a store.

Runs in the notebook's process.
"""
