"""What a process tells dashboards, in lines, and how they read it."""
