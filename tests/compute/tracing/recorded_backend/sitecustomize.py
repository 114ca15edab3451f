"""Lets context processes find the backend beside this file."""

from pathlib import Path

import accel_lab.backends

accel_lab.backends.__path__.append(str(Path(__file__).parent))
