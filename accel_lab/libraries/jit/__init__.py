"""The user's own kernels: compiled, launched."""
