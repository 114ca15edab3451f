"""What is sent to a device: operations, buffers, what a backend supports.

Runs in both.
"""
