"""An adapter as a device: its one queue, its buffers, and arrays whose strides NumPy reckons.

Runs in a context's process.
"""
