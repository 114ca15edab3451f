"""Patterns that serve functions and models: batching, cascades, replicas, swaps, shares, decoding.

Each is an actor over typed messages with a front that its user holds. A function becomes a stage
with `@stage`, and one pattern may stand behind another.

Runs in the notebook's process.
"""

from accel_lab.blueprints.patterns.base.errors import NoReplica as NoReplica
from accel_lab.blueprints.patterns.base.errors import RequestExpired as RequestExpired
from accel_lab.blueprints.patterns.base.errors import SwapRefused as SwapRefused
from accel_lab.blueprints.patterns.base.errors import WrongAnswer as WrongAnswer
from accel_lab.blueprints.patterns.base.mixture import Mixed as Mixed
from accel_lab.blueprints.patterns.base.record import PatternDecided as PatternDecided
from accel_lab.blueprints.patterns.base.record import Statistics as Statistics
from accel_lab.blueprints.patterns.base.request import Infer as Infer
from accel_lab.blueprints.patterns.base.request import Stream as Stream
from accel_lab.blueprints.patterns.base.routing import Balance as Balance
from accel_lab.blueprints.patterns.base.routing import Routed as Routed
from accel_lab.blueprints.patterns.base.routing import route as route
from accel_lab.blueprints.patterns.base.stage import Stage as Stage
from accel_lab.blueprints.patterns.base.stage import stage as stage
from accel_lab.blueprints.patterns.batching import DynamicBatchingServer as DynamicBatchingServer
from accel_lab.blueprints.patterns.cascade import InferenceCascade as InferenceCascade
from accel_lab.blueprints.patterns.cascade import Judged as Judged
from accel_lab.blueprints.patterns.cascade import Step as Step
from accel_lab.blueprints.patterns.decoding import END as END
from accel_lab.blueprints.patterns.decoding import DecodingServer as DecodingServer
from accel_lab.blueprints.patterns.decoding import Last as Last
from accel_lab.blueprints.patterns.decoding import Sequence as Sequence
from accel_lab.blueprints.patterns.fair_share import FairShareScheduler as FairShareScheduler
from accel_lab.blueprints.patterns.fair_share import Tenant as Tenant
from accel_lab.blueprints.patterns.hot_swap import ModelHotSwapServer as ModelHotSwapServer
from accel_lab.blueprints.patterns.hot_swap import Served as Served
from accel_lab.blueprints.patterns.hot_swap import Swapped as Swapped
from accel_lab.blueprints.patterns.moe_router import MoeRouter as MoeRouter
from accel_lab.blueprints.patterns.replica_pool import ModelReplicaPool as ModelReplicaPool
from accel_lab.blueprints.patterns.speculative import Model as Model
from accel_lab.blueprints.patterns.speculative import PromptLookup as PromptLookup
from accel_lab.blueprints.patterns.speculative import SpeculativeDecoder as SpeculativeDecoder
