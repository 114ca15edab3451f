"""Giving the hardware back and taking it again.

Runs in both.
"""
