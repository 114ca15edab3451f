"""Import what trains networks.

from accel_lab.prelude.train import *
"""

from accel_lab.blueprints.train import (
    SGD,
    AdamW,
    Batches,
    Checkpoints,
    Cosine,
    DataParallelTrainer,
    GridTrainer,
    ShardedTrainer,
    Trainer,
    Variable,
    cross_entropy,
    gradients,
    mse,
)

__all__ = [
    "SGD",
    "AdamW",
    "Batches",
    "Checkpoints",
    "Cosine",
    "DataParallelTrainer",
    "GridTrainer",
    "ShardedTrainer",
    "Trainer",
    "Variable",
    "cross_entropy",
    "gradients",
    "mse",
]
