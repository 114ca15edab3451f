"""Other actor systems, to compare an empty message with: one file each, one process each."""
