"""Moments as people read them."""

import time


def time_of_day(at: float) -> str:
    """Write a moment, seconds since 1970, as the local time of day in milliseconds."""
    return f"{time.strftime('%H:%M:%S', time.localtime(at))}.{int(at * 1000) % 1000:03}"
