"""This machine and this process: memory, sockets, signals, files; knows no device.

Runs in both.
"""
