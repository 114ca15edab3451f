"""The folder of a session: its files, its lock, and whether this user has written them.

Runs in the notebook's process.
"""
