"""Context processes: forked, bound, watched, reaped.

Runs in both.
"""
