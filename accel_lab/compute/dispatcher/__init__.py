"""The context's loop: decode, order, enqueue, complete, report.

Runs in a context's process.
"""
