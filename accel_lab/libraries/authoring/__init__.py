"""What a library's author writes with: operands, shapes, dtypes, registration.

Runs in both.
"""
