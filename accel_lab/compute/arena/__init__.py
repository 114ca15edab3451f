"""Page-locked host memory that notebook and contexts share.

Runs in both.
"""
