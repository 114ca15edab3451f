"""The `jit` library on CUDA: NVRTC and what it compiled."""
