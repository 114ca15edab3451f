"""What every accelerator has: buffers, the wire, context processes, transfers, supervision.

Runs in both.
"""
