"""What a journal says: entries read from groups, found, and written as lines.

Runs in the notebook's process.
"""
