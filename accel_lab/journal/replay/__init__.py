"""Recorded messages sent again, and what comes of them compared with the record.

Runs in the notebook's process.
"""
