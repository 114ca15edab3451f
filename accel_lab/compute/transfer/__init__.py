"""`put`, `get`, checkpoints."""
