"""What a view shows of the past: journals and recordings.

Runs in the notebook's process.
"""
