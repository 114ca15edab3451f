"""Context processes: forked, bound, watched, reaped."""
