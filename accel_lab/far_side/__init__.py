"""The program on a machine that ssh reaches: `python -m accel_lab.far_side`."""
