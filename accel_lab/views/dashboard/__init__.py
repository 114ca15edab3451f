"""The dashboard: a server and a page of its own for every system of this user."""
