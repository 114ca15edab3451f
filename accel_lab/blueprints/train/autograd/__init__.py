"""Gradients of what messages compute.

Runs in the notebook's process.
"""
