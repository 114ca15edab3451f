"""The canvas, where it lives in a server of its own."""
