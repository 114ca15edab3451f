"""What a notebook adds to the library: cells that run where the arrays are."""
