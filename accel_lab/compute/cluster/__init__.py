"""Contexts on other machines: a node's actor owns them there, a relay carries what is said.

Runs in the notebook's process, but for the files that `node.py` imports: those run in an actor of
the cluster, on each other node.
"""
