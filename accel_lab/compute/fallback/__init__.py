"""What a backend lacks, computed by the host in the middle of that backend's context.

Runs in a context's process.
"""
