"""Import the patterns that serve functions and models.

from accel_lab.prelude.patterns import *
"""

from accel_lab.blueprints.patterns import (
    DecodingServer,
    DynamicBatchingServer,
    FairShareScheduler,
    InferenceCascade,
    ModelHotSwapServer,
    ModelReplicaPool,
    MoeRouter,
    SpeculativeDecoder,
    stage,
)

__all__ = [
    "DecodingServer",
    "DynamicBatchingServer",
    "FairShareScheduler",
    "InferenceCascade",
    "ModelHotSwapServer",
    "ModelReplicaPool",
    "MoeRouter",
    "SpeculativeDecoder",
    "stage",
]
