"""The thread that gathers what devices were sent and commits it to a store."""
