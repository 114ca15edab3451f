"""The journal of what devices were sent: stores, reading, replay, explaining a loss.

Runs in the notebook's process.
"""
