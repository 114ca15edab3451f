"""Effects on a stream of frames: an actor that keeps the graph, and what effects remember."""

from collections import deque
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from accel_lab.actor import Actor, Message, handles
from accel_lab.blueprints.realtime.checkpoints import keep
from accel_lab.blueprints.realtime.checks import require_buffer
from accel_lab.blueprints.realtime.image_filters import require_image
from accel_lab.blueprints.realtime.video.effect_graph import FRAME, EffectGraph, Node
from accel_lab.blueprints.realtime.video.effects import (
    TEMPORAL,
    Delay,
    Effect,
    EffectKernels,
    Past,
    require_effect,
    sources_of,
)
from accel_lab.compute.device import Device
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import AccelError, InvalidArgument
from accel_lab.libraries import array, event

KEEP_EVERY = 16
"""After how many frames what effects remember is checkpointed."""
TIMED_FRAMES = 64
"""Of how many frames the times are told."""


class ProcessFrame(Message[dict[str, AccelRef]], frozen=True):
    """Run the graph over the next frame; answers with the frame of each output by its name."""

    frame: AccelRef


class ProcessClip(Message[dict[str, AccelRef]], frozen=True):
    """Run it over frames (n, height, width) or (n, height, width, channels), one by one."""

    frames: AccelRef


class SetEffect(Message[None], frozen=True):
    """Give a node another effect, from the next frame on; one of its kind remembers what it did."""

    node: str
    effect: Effect


class ForgetFrames(Message[None], frozen=True):
    """Begin anew: no effect remembers a frame."""


class GetNodeTimes(Message[dict[str, "NodeTime"]], frozen=True):
    """Tell how long each node took, of the last frames whose times the device still has."""


class NodeTime(NamedTuple):
    """How long a node took on the device.

    Attributes:
        frames: of how many frames that is known.
        median_ms: of these; without any it is NaN.
        last_ms: of the last of them.
    """

    frames: int
    median_ms: float
    last_ms: float


class VideoEffectsGraph(Actor):
    """Runs effects over float32 frames of 1, 3 or 4 channels, all of one size.

    Nothing waits: a frame can be sent while those before are computed. What effects remember of
    frames survives a fault.

    Parameters:
        graph: is copied.
        outputs: the nodes whose frames are wanted; every node is to lead to one of them.
        timed: whether each node is timed, which is a message more for each.
    """

    def __init__(
        self, device: Device, graph: EffectGraph, *outputs: str, timed: bool = False
    ) -> None:
        if not isinstance(graph, EffectGraph):
            raise InvalidArgument(f"VideoEffectsGraph: graph must be an EffectGraph, not {graph!r}")
        if not outputs or FRAME in outputs:
            raise InvalidArgument(
                f"VideoEffectsGraph: outputs must be names of nodes, at least one, not {outputs}"
            )
        self.device = device
        self.outputs = outputs
        self.timed = timed
        self.order = graph.order(outputs)
        self.nodes: dict[str, Node] = dict(graph.nodes)
        self.kernels = EffectKernels(device)
        self.weights = {
            name: self.kernels.weights(node.effect) for name, node in self.nodes.items()
        }
        self.marks: deque[list[Any]] = deque(maxlen=TIMED_FRAMES)
        self.times: deque[list[float]] = deque(maxlen=TIMED_FRAMES)
        self.forget_frames(ForgetFrames())

    @handles(ForgetFrames)
    def forget_frames(self, _: ForgetFrames) -> None:
        """Let them go; the next frame may have another size."""
        self.past: dict[str, Past] = {}
        self.shape: tuple[int, ...] | None = None
        self.frames = 0

    @handles(SetEffect)
    def set_effect(self, m: SetEffect) -> None:
        """Check it, and take it."""
        if m.node not in self.nodes:
            raise InvalidArgument(f"SetEffect: node must be one of {self.order}, not {m.node!r}")
        old, sources = self.nodes[m.node]
        require_effect(m.effect)
        if sources_of(m.effect) != len(sources):
            raise InvalidArgument(
                f"SetEffect: effect of {m.node!r} must take {len(sources)} frames, not "
                f"{sources_of(m.effect)}"
            )
        if type(m.effect) is not type(old):
            self.past.pop(m.node, None)
        elif isinstance(m.effect, Delay) and m.node in self.past:
            self.past[m.node] = self.past[m.node][-m.effect.frames :]
        self.nodes[m.node] = Node(m.effect, sources)
        self.weights[m.node] = self.kernels.weights(m.effect)

    @handles(ProcessFrame)
    def process_frame(self, m: ProcessFrame) -> dict[str, AccelRef]:
        """Send all nodes."""
        return self._process(require_image("ProcessFrame: frame", m.frame, self.device))

    @handles(ProcessClip)
    def process_clip(self, m: ProcessClip) -> dict[str, AccelRef]:
        """Send all nodes for each frame."""
        extents = ("n", "height", "width", "channels")[
            : max(3, len(getattr(m.frames, "shape", ())))
        ]
        clip = require_buffer("ProcessClip: frames", m.frames, self.device, extents, "float32")
        if not clip.shape[0]:
            raise InvalidArgument("ProcessClip: frames must be at least one, not 0")
        require_image("ProcessClip: a frame", clip[0], self.device)
        made = [self._process(clip[i]) for i in range(clip.shape[0])]
        return {name: array.stack([one[name] for one in made]) for name in self.outputs}

    def _process(self, frame: AccelRef) -> dict[str, AccelRef]:
        if self.shape not in {None, frame.shape}:
            raise InvalidArgument(
                f"a frame must be of shape {self.shape}, as those before, not {frame.shape}; "
                "after ForgetFrames() it may have another"
            )
        frames = {FRAME: frame.copy()}  # its owner may write to it, and effects remember it
        past: dict[str, Past] = {}
        marks = [self._mark()] if self.timed else []
        for name in self.order:
            effect, sources = self.nodes[name]
            given = [frames[one] for one in sources]
            before = self.past.get(name, ())
            frames[name], behind = self.kernels.apply(effect, self.weights[name], given, before)
            if isinstance(effect, TEMPORAL):
                past[name] = behind
            if self.timed:
                marks.append(self._mark())
        self.past, self.shape = past, frame.shape
        self.frames += 1
        if self.timed:
            self.marks.append(marks)
        held = [one for several in past.values() for one in several]
        if self.frames % KEEP_EVERY == 0:
            keep(self.device, held)
        own = {id(one) for one in held}
        made = {name: frames[name] for name in self.outputs}
        return {name: one.copy() if id(one) in own else one for name, one in made.items()}

    def _mark(self) -> Any:
        mark = event.record(self.device)
        # With a waiter a mark that a fault costs is not told as a failure nobody has heard of.
        mark.add_waiter(lambda: None)
        return mark

    @handles(GetNodeTimes)
    def get_node_times(self, _: GetNodeTimes) -> dict[str, NodeTime]:
        """Wait for the frames that were sent, and measure between their marks."""
        while self.marks:
            marks = self.marks.popleft()
            try:
                self.times.append([event.elapsed(*two) for two in pairwise(marks)])
            except AccelError:  # the marks went with their context
                continue
        columns = [[times[i] for times in self.times] for i in range(len(self.order))]
        return {
            name: NodeTime(len(one), median(one), one[-1]) if one else NodeTime(0, NAN, NAN)
            for name, one in zip(self.order, columns, strict=True)
        }


NAN = float("nan")
