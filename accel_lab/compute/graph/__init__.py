"""Messages that are recorded once and launched again and again: `gpu.graph()`.

Runs in both.
"""
