"""What is sent to several devices at once, and comes back from them together.

Runs in the notebook's process.
"""
