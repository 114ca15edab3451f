"""What was sent, as bytes, and which of it rebuilds a buffer.

Runs in the notebook's process.
"""
