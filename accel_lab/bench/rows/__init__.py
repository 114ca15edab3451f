"""The rows of the benchmark: each measures accel_lab and a peer in the same rounds."""
