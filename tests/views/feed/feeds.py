"""What the tests of feeds share: a connection to one, and what comes of it."""

import os
import socket
import threading
from pathlib import Path

from accel_lab.actor.events import Event
from accel_lab.views.feed import folder as feed_folder
from accel_lab.views.feed.client import FeedSource
from accel_lab.views.scene.fact_lines import decode


def connect(folder: Path) -> socket.socket:
    """Connect to the only feed in a folder."""
    entered = feed_folder.enter(folder)
    (name,) = feed_folder.names(entered)
    connected = socket.socket(socket.AF_UNIX)
    connected.settimeout(20)
    connected.connect(feed_folder.path(entered, name))
    os.close(entered)
    return connected


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "accel_lab feed"]


def facts(lines: list[bytes]) -> list[Event]:
    return [decode(line) for line in lines if line.startswith(b'{"type"')]


def tree_of(source: FeedSource) -> object:
    with source.lock:
        return source.look().tree
