"""Arrays: making them, arithmetic, reductions, indexing."""
