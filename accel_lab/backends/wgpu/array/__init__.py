"""The library `array` on wgpu, by generated WGSL.

Runs in a context's process.
"""
