"""One card: its memory, streams, clock and faults."""
