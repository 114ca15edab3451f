"""The library actors of every context: transfer, digest, fault, run."""
