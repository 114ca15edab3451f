"""Chooses a device for a message that names none.

Runs in the notebook's process.
"""
