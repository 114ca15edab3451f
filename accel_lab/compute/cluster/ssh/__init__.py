"""A machine that ssh reaches: a process there owns contexts, and a stream outlives connections.

Runs in the notebook's process, but for `keeper.py`, which runs on the far machine, and what both
sides have: `batches.py`, `greeting.py`, `stream.py` and `squeezer.py`.
"""
