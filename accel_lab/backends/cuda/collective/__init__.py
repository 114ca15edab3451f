"""Collective operations between cards: NCCL, through nccl4py's bindings.

Runs in a context's process.
"""
