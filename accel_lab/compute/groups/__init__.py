"""One message to several devices: what its parts know of each other.

Runs in both.
"""
