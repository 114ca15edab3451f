"""Where a journal lies: memory, a file, a database, Redis; groups of bytes, proven whole."""
