"""What devices were sent, kept beyond them: stores, reading, running it again, explaining."""
