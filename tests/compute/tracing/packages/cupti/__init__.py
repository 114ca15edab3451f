"""A stand-in for the package `cupti-python`."""
