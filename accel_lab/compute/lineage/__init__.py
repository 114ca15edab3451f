"""What was sent, as bytes, and which of it makes a buffer again.

Runs in the notebook's process.
"""
