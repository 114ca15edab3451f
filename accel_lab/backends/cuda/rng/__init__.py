"""The `rng` library on CUDA."""
