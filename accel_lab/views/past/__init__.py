"""What a view shows of the past: journals and recordings."""
