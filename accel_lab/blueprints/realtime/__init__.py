"""Simulations that one watches: actors whose state lives on a device, in kernels of our own.

Runs in the notebook's process.
"""

from accel_lab.blueprints.realtime.analysis.multi_pass_analysis import Analyse as Analyse
from accel_lab.blueprints.realtime.analysis.multi_pass_analysis import Analysis as Analysis
from accel_lab.blueprints.realtime.analysis.multi_pass_analysis import Load as Load
from accel_lab.blueprints.realtime.analysis.multi_pass_analysis import (
    MultiPassAnalysisActor as MultiPassAnalysisActor,
)
from accel_lab.blueprints.realtime.analysis.multi_pass_analysis import SetPasses as SetPasses
from accel_lab.blueprints.realtime.analysis.passes import Bins as Bins
from accel_lab.blueprints.realtime.analysis.passes import Histogram as Histogram
from accel_lab.blueprints.realtime.analysis.passes import Map as Map
from accel_lab.blueprints.realtime.analysis.passes import Normalise as Normalise
from accel_lab.blueprints.realtime.analysis.passes import Outliers as Outliers
from accel_lab.blueprints.realtime.analysis.passes import Outlying as Outlying
from accel_lab.blueprints.realtime.analysis.passes import Pass as Pass
from accel_lab.blueprints.realtime.analysis.passes import Quantiles as Quantiles
from accel_lab.blueprints.realtime.analysis.passes import Statistics as Statistics
from accel_lab.blueprints.realtime.analysis.reduction_analysis import Accumulate as Accumulate
from accel_lab.blueprints.realtime.analysis.reduction_analysis import Forget as Forget
from accel_lab.blueprints.realtime.analysis.reduction_analysis import Reduce as Reduce
from accel_lab.blueprints.realtime.analysis.reduction_analysis import (
    ReductionAnalysisActor as ReductionAnalysisActor,
)
from accel_lab.blueprints.realtime.analysis.reduction_analysis import Totals as Totals
from accel_lab.blueprints.realtime.analysis.summaries import Reductions as Reductions
from accel_lab.blueprints.realtime.analysis.summaries import ReductionValues as ReductionValues
from accel_lab.blueprints.realtime.cloth import ClothSimulationActor as ClothSimulationActor
from accel_lab.blueprints.realtime.cloth import SetBall as SetBall
from accel_lab.blueprints.realtime.cloth import SetBreeze as SetBreeze
from accel_lab.blueprints.realtime.cloth import SetPins as SetPins
from accel_lab.blueprints.realtime.cloth import SetPull as SetPull
from accel_lab.blueprints.realtime.fluid import AddSource as AddSource
from accel_lab.blueprints.realtime.fluid import FluidSimulationActor as FluidSimulationActor
from accel_lab.blueprints.realtime.fluid import SetEddies as SetEddies
from accel_lab.blueprints.realtime.fluid import SetLift as SetLift
from accel_lab.blueprints.realtime.fluid import SetObstacles as SetObstacles
from accel_lab.blueprints.realtime.fluid import SetViscosity as SetViscosity
from accel_lab.blueprints.realtime.fluid import SetWind as SetWind
from accel_lab.blueprints.realtime.fluid import Show as Show
from accel_lab.blueprints.realtime.fluid import Splash as Splash
from accel_lab.blueprints.realtime.hash_map import CountKeys as CountKeys
from accel_lab.blueprints.realtime.hash_map import Entries as Entries
from accel_lab.blueprints.realtime.hash_map import Erase as Erase
from accel_lab.blueprints.realtime.hash_map import Find as Find
from accel_lab.blueprints.realtime.hash_map import Found as Found
from accel_lab.blueprints.realtime.hash_map import GpuHashMapActor as GpuHashMapActor
from accel_lab.blueprints.realtime.hash_map import Insert as Insert
from accel_lab.blueprints.realtime.hash_map import Items as Items
from accel_lab.blueprints.realtime.image_filters import Bilateral as Bilateral
from accel_lab.blueprints.realtime.image_filters import Correlate as Correlate
from accel_lab.blueprints.realtime.image_filters import Equalise as Equalise
from accel_lab.blueprints.realtime.image_filters import FilterImage as FilterImage
from accel_lab.blueprints.realtime.image_filters import ImageFilterPipeline as ImageFilterPipeline
from accel_lab.blueprints.realtime.image_filters import Separable as Separable
from accel_lab.blueprints.realtime.image_filters import SetFilters as SetFilters
from accel_lab.blueprints.realtime.image_filters import Sobel as Sobel
from accel_lab.blueprints.realtime.particles import ParticleSystemActor as ParticleSystemActor
from accel_lab.blueprints.realtime.particles import SetBounce as SetBounce
from accel_lab.blueprints.realtime.particles import SetDrag as SetDrag
from accel_lab.blueprints.realtime.particles import SetFriction as SetFriction
from accel_lab.blueprints.realtime.particles import SetGravity as SetGravity
from accel_lab.blueprints.realtime.simulation import Control as Control
from accel_lab.blueprints.realtime.simulation import Describe as Describe
from accel_lab.blueprints.realtime.simulation import Description as Description
from accel_lab.blueprints.realtime.simulation import Measure as Measure
from accel_lab.blueprints.realtime.simulation import Picture as Picture
from accel_lab.blueprints.realtime.simulation import Simulation as Simulation
from accel_lab.blueprints.realtime.simulation import Step as Step
from accel_lab.blueprints.realtime.sparse_structure import AddEntries as AddEntries
from accel_lab.blueprints.realtime.sparse_structure import Coo as Coo
from accel_lab.blueprints.realtime.sparse_structure import Csr as Csr
from accel_lab.blueprints.realtime.sparse_structure import Ell as Ell
from accel_lab.blueprints.realtime.sparse_structure import GetFacts as GetFacts
from accel_lab.blueprints.realtime.sparse_structure import GetStored as GetStored
from accel_lab.blueprints.realtime.sparse_structure import (
    GpuSparseStructureActor as GpuSparseStructureActor,
)
from accel_lab.blueprints.realtime.sparse_structure import Multiply as Multiply
from accel_lab.blueprints.realtime.sparse_structure import SetEntries as SetEntries
from accel_lab.blueprints.realtime.sparse_structure import SetFormat as SetFormat
from accel_lab.blueprints.realtime.sparse_structure import SparseFacts as SparseFacts
from accel_lab.blueprints.realtime.spatial_index import Index as Index
from accel_lab.blueprints.realtime.spatial_index import Neighbours as Neighbours
from accel_lab.blueprints.realtime.spatial_index import SpatialIndexActor as SpatialIndexActor
from accel_lab.blueprints.realtime.spatial_index import Within as Within
from accel_lab.blueprints.realtime.video.effect_graph import EffectGraph as EffectGraph
from accel_lab.blueprints.realtime.video.effects import Adjust as Adjust
from accel_lab.blueprints.realtime.video.effects import Blend as Blend
from accel_lab.blueprints.realtime.video.effects import Change as Change
from accel_lab.blueprints.realtime.video.effects import Delay as Delay
from accel_lab.blueprints.realtime.video.effects import Effect as Effect
from accel_lab.blueprints.realtime.video.effects import Mask as Mask
from accel_lab.blueprints.realtime.video.effects import Merge as Merge
from accel_lab.blueprints.realtime.video.effects import Smooth as Smooth
from accel_lab.blueprints.realtime.video.effects import Threshold as Threshold
from accel_lab.blueprints.realtime.video.effects import Trail as Trail
from accel_lab.blueprints.realtime.video.errors import EffectCycle as EffectCycle
from accel_lab.blueprints.realtime.video.video_effects import ForgetFrames as ForgetFrames
from accel_lab.blueprints.realtime.video.video_effects import GetNodeTimes as GetNodeTimes
from accel_lab.blueprints.realtime.video.video_effects import NodeTime as NodeTime
from accel_lab.blueprints.realtime.video.video_effects import ProcessClip as ProcessClip
from accel_lab.blueprints.realtime.video.video_effects import ProcessFrame as ProcessFrame
from accel_lab.blueprints.realtime.video.video_effects import SetEffect as SetEffect
from accel_lab.blueprints.realtime.video.video_effects import VideoEffectsGraph as VideoEffectsGraph
