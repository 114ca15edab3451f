"""cuBLASLt: how a product is asked for, plans of that, and the algorithms found for it.

Runs in a context's process.
"""
