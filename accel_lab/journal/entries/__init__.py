"""What a journal says: entries read from groups, found, and written as lines."""
