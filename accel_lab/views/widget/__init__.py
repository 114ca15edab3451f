"""Widgets: a front end, its assets, and what it asks for.

Runs in the notebook's process.
"""
