"""What others are told of the launch path, where a system is opened with `trace`.

Runs in a context's process.
"""
