"""The bytes between notebook and contexts: frames, side channel, failures.

Runs in both.
"""
