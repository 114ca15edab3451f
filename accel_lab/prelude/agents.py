"""Import agents over devices.

from accel_lab.prelude.agents import *
"""

from accel_lab.blueprints.agents import (
    AgentGraph,
    EmbeddingCache,
    GraphAgent,
    RagPipeline,
    SharedGpuStateCoordinator,
    VectorIndex,
    chunks,
)

__all__ = [
    "AgentGraph",
    "EmbeddingCache",
    "GraphAgent",
    "RagPipeline",
    "SharedGpuStateCoordinator",
    "VectorIndex",
    "chunks",
]
