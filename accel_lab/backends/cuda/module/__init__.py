"""The `module` library on CUDA: binaries, what they say of themselves, and nvJitLink.

Runs in a context's process.
"""
