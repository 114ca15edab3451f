"""What one process has and others open: files, flags, and memory of a card.

Runs in both, and in any other process of the user's.
"""
