"""The `fft` library on CUDA: cuFFT, its plans, and copies around them.

Runs in a context's process.
"""
