"""What `accel-lab top` shows: every system of this user on this machine, in a terminal.

It reads the feeds that the dashboard reads, in a process of its own, and changes nothing. Textual
is imported when the terminal is asked for; a snapshot needs nothing.
"""
