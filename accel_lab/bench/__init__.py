"""What accel_lab costs: measured against the array library that a user would call instead."""
