"""Vendors' handles and plans: on which stream they enqueue, and when the device has passed them.

Runs in a context's process.
"""
