"""One device's requests: numbered, queued, sent, awaited, answered once."""
