"""Send recorded messages again, and compare their results with the record.

Runs in the notebook's process.
"""
