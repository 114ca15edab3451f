"""What the names of a notebook stand for, as plain data, without secrets.

Runs in the notebook's process.
"""
