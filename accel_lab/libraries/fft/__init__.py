"""Fourier transforms.

Runs in both.
"""
