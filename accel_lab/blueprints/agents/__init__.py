"""Agents over devices: answers from documents, a state that many share, and graphs of nodes.

Each is made of patterns and messages, and its user holds its front.

Runs in the notebook's process.
"""

from accel_lab.blueprints.agents.chunking import Chunk as Chunk
from accel_lab.blueprints.agents.chunking import chunks as chunks
from accel_lab.blueprints.agents.embedding_cache import EmbeddingCache as EmbeddingCache
from accel_lab.blueprints.agents.errors import LeaseLost as LeaseLost
from accel_lab.blueprints.agents.errors import MergeConflict as MergeConflict
from accel_lab.blueprints.agents.errors import UnboundedCycle as UnboundedCycle
from accel_lab.blueprints.agents.errors import VisitsExceeded as VisitsExceeded
from accel_lab.blueprints.agents.graph import END as END
from accel_lab.blueprints.agents.graph import START as START
from accel_lab.blueprints.agents.graph import AgentGraph as AgentGraph
from accel_lab.blueprints.agents.graph import Sends as Sends
from accel_lab.blueprints.agents.graph import as_function as as_function
from accel_lab.blueprints.agents.graph_agent import Checkpoint as Checkpoint
from accel_lab.blueprints.agents.graph_agent import GraphAgent as GraphAgent
from accel_lab.blueprints.agents.rag_pipeline import Answered as Answered
from accel_lab.blueprints.agents.rag_pipeline import RagPipeline as RagPipeline
from accel_lab.blueprints.agents.rag_pipeline import Source as Source
from accel_lab.blueprints.agents.shared_state import Commit as Commit
from accel_lab.blueprints.agents.shared_state import Lease as Lease
from accel_lab.blueprints.agents.shared_state import Release as Release
from accel_lab.blueprints.agents.shared_state import Renew as Renew
from accel_lab.blueprints.agents.shared_state import (
    SharedGpuStateCoordinator as SharedGpuStateCoordinator,
)
from accel_lab.blueprints.agents.shared_state import Snapshot as Snapshot
from accel_lab.blueprints.agents.vector_index import Nearest as Nearest
from accel_lab.blueprints.agents.vector_index import VectorIndex as VectorIndex
