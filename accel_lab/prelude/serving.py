"""Import what serves language models over HTTP.

from accel_lab.prelude.serving import *
"""

from accel_lab.blueprints.serving import (
    Client,
    Deployment,
    Embedder,
    Endpoint,
    TextModel,
    serve,
)

__all__ = [
    "Client",
    "Deployment",
    "Embedder",
    "Endpoint",
    "TextModel",
    "serve",
]
