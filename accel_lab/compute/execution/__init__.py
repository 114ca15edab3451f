"""What a library's author sees in a context: launches, streams, buffers, the backend.

Runs in a context's process.
"""
