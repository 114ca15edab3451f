"""How things read in a notebook, as text and as plain tables: what every floor may use.

Runs in both.
"""
