"""Making buffers again after a loss."""
