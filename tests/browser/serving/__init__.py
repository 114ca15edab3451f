"""Patterns and agents, in a JupyterLab of their own."""
