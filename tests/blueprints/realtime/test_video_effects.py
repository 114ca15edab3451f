"""A graph of effects is the same effects in NumPy and SciPy, frame after frame."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from accel_lab import Device, System
from accel_lab.blueprints.realtime import (
    Adjust,
    Blend,
    Change,
    Delay,
    EffectCycle,
    EffectGraph,
    ForgetFrames,
    GetNodeTimes,
    Mask,
    Merge,
    ProcessClip,
    ProcessFrame,
    Separable,
    SetEffect,
    Smooth,
    Sobel,
    Threshold,
    Trail,
    VideoEffectsGraph,
)
from accel_lab.blueprints.realtime.video import video_effects
from accel_lab.errors import ContextLost, InvalidArgument

BLUR = np.array([1, 4, 6, 4, 1]) / 16


def clip_of(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).random(shape).astype("float32")


def shown(spawn: Any, device: Device, clip: Any, *nodes: Any) -> dict[str, Any]:
    """Run a clip through nodes (name, effect, sources), each of which is an output."""
    graph = EffectGraph()
    for name, effect, *sources in nodes:
        graph.node(name, effect, *sources)
    actor = spawn(lambda: VideoEffectsGraph(device, graph, *graph.nodes))
    made = actor.ask(ProcessClip(device.put(clip))).result()
    actor.stop()
    return {name: one.get() for name, one in made.items()}


def test_each_effect_is_its_definition(spawn: Any, device: Device) -> None:
    clip = clip_of(0, 6, 9, 11, 3)
    half = clip[:, :, :, :] * np.float32(0.5) + np.float32(0.25)
    ways = ("add", "multiply", "screen", "lighten", "darken", "difference")
    got = shown(
        spawn,
        device,
        clip,
        ("half", Adjust(0.5, 0.25)),
        ("high", Threshold(0.5)),
        ("mixed", Blend(0.25), "frame", "half"),
        ("masked", Mask(), "frame", "half", "high"),
        ("trail", Trail(0.75)),
        ("smooth", Smooth(0.25)),
        ("late", Delay(2)),
        ("moved", Change()),
        *((way, Merge(way), "frame", "half") for way in ways),  # type: ignore[arg-type]
    )
    high = (clip >= 0.5).astype("float32")
    wanted = {
        "half": half,
        "high": high,
        "mixed": 0.75 * clip + 0.25 * half,
        "masked": np.where(high > 0, half, clip),
        "add": clip + half,
        "multiply": clip * half,
        "screen": 1 - (1 - clip) * (1 - half),
        "lighten": np.maximum(clip, half),
        "darken": np.minimum(clip, half),
        "difference": abs(clip - half),
        "late": clip[[0, 0, 0, 1, 2, 3]],
        "moved": abs(np.diff(clip, axis=0, prepend=clip[:1])),
    }
    trail, smooth = [clip[0]], [clip[0]]
    for frame in clip[1:]:
        trail.append(np.maximum(frame, np.float32(0.75) * trail[-1]))
        smooth.append(np.float32(0.75) * smooth[-1] + np.float32(0.25) * frame)
    wanted |= {"trail": np.stack(trail), "smooth": np.stack(smooth)}
    assert got.keys() == wanted.keys()
    for name, want in wanted.items():
        np.testing.assert_allclose(got[name], want, rtol=1e-6, atol=1e-7, err_msg=name)


def test_branches_meet_and_filters_are_scipys(spawn: Any, device: Device) -> None:
    """Declared the wrong way round; unsharp masking, with the edges put over it."""
    clip = clip_of(1, 2, 20, 30)
    got = shown(
        spawn,
        device,
        clip,
        ("both", Merge("lighten"), "sharp", "edges"),
        ("sharp", Blend(1.0), "blurred", "over"),
        ("over", Merge("difference"), "frame", "blurred"),
        ("edges", Sobel(), "blurred"),
        ("blurred", Separable(BLUR, BLUR)),
    )
    for i, frame in enumerate(clip.astype(float)):
        blurred = ndimage.correlate(frame, np.outer(BLUR, BLUR), mode="reflect")
        edges = np.hypot(ndimage.sobel(blurred, 0), ndimage.sobel(blurred, 1))
        over = abs(frame - blurred)
        np.testing.assert_allclose(got["both"][i], np.maximum(over, edges), atol=1e-5)


def has_cycle(sources: dict[str, list[str]]) -> bool:
    """Whether some node reaches itself: the powers of the adjacency matrix tell."""
    names = list(sources)
    reach = np.array([[b in sources[a] for b in names] for a in names])
    for _ in names:
        reach = reach | (reach @ reach)
    return bool(reach.diagonal().any())


@settings(max_examples=60)
@given(data=st.data(), n=st.integers(1, 6))
def test_a_graph_is_ordered_or_refused_with_the_path_of_its_cycle(data: Any, n: int) -> None:
    names = [f"n{i}" for i in range(n)]
    one = st.sampled_from([*names, "frame"])
    sources = {name: data.draw(st.lists(one, min_size=2, max_size=2)) for name in names}
    graph = EffectGraph()
    for name, two in sources.items():
        graph.node(name, Blend(), *two)
    if has_cycle(sources):
        with pytest.raises(EffectCycle) as caught:
            graph.order(tuple(names))
        path = caught.value.path
        assert path[0] == path[-1]
        assert len(path) > 1
        for source, node in pairwise(path):
            assert source in sources[node]
        assert " -> ".join(path) in str(caught.value)
        with pytest.raises(EffectCycle):  # also where no output leads to it
            graph.node("own", Sobel()).order(("own",))
    else:
        order = graph.order(tuple(names))
        assert sorted(order) == names
        for i, name in enumerate(order):
            assert set(sources[name]) <= {*order[:i], "frame"}


def trailing() -> EffectGraph:
    return (
        EffectGraph()
        .node("moved", Change())
        .node("blurred", Separable(BLUR, BLUR), "moved")
        .node("trail", Trail(0.9), "blurred")
        .node("late", Delay(3), "trail")
        .node("all", Merge("screen"), "late", "frame")
    )


def test_trails_survive_a_kill(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video_effects, "KEEP_EVERY", 4)
    clip = clip_of(2, 13, 16, 12, 3)
    with System(backend, devices=1) as lab:
        (device,) = lab.devices

        def run(*, killed: bool) -> list[Any]:
            actor = lab.spawn(lambda: VideoEffectsGraph(device, trailing(), "all", timed=killed))
            made = []
            for i, frame in enumerate(clip):
                made.append(actor.ask(ProcessFrame(device.put(frame))))
                if killed and i in {2, 9}:
                    made[0].result()  # its times are going to be lost
                    with pytest.raises(ContextLost):
                        lab.inject("kill").result()
            frames = [one.result()["all"].get() for one in made]
            if killed:
                times = actor.ask(GetNodeTimes()).result()
                assert all(3 <= one.frames < len(clip) for one in times.values())
            actor.stop()
            return frames

        for same, frame in zip(run(killed=True), run(killed=False), strict=True):
            np.testing.assert_array_equal(same, frame)
        assert device.generation == 3
        lab.check()


def test_nodes_are_timed(spawn: Any, device: Device) -> None:
    graph = EffectGraph().node("blurred", Separable(BLUR, BLUR)).node("edges", Sobel(), "blurred")
    actor = spawn(lambda: VideoEffectsGraph(device, graph, "edges", timed=True))
    nothing = actor.ask(GetNodeTimes()).result()
    assert [one.frames for one in nothing.values()] == [0, 0]
    assert all(math.isnan(one.median_ms) for one in nothing.values())
    actor.ask(ProcessClip(device.put(clip_of(0, 3, 64, 64)))).result()
    times = actor.ask(GetNodeTimes()).result()
    assert list(times) == ["blurred", "edges"]
    for one in times.values():
        assert one.frames == 3
        assert one.median_ms > 0
        assert one.last_ms > 0


def test_effects_are_changed_while_frames_come(spawn: Any, device: Device) -> None:
    clip = clip_of(3, 4, 5, 6)
    frames = [device.put(one) for one in clip]
    actor = spawn(lambda: VideoEffectsGraph(device, EffectGraph().node("t", Trail(0.5)), "t"))
    actor.ask(ProcessFrame(frames[0])).result()
    actor.ask(SetEffect("t", Trail(0.75))).result()  # it remembers the first frame
    got = actor.ask(ProcessFrame(frames[1])).result()["t"].get()
    np.testing.assert_array_equal(got, np.maximum(clip[1], np.float32(0.75) * clip[0]))
    actor.ask(SetEffect("t", Change())).result()  # which is another kind
    assert (actor.ask(ProcessFrame(frames[2])).result()["t"].get() == 0).all()
    actor.ask(ForgetFrames()).result()
    other = device.put(clip_of(4, 7, 7, 3))
    assert (actor.ask(ProcessFrame(other)).result()["t"].get() == 0).all()


def test_a_frame_that_is_written_to_later_is_remembered_as_it_was(
    spawn: Any, device: Device
) -> None:
    actor = spawn(lambda: VideoEffectsGraph(device, EffectGraph().node("late", Delay()), "late"))
    frame = device.put(np.ones((4, 4), "float32"))
    shown = actor.ask(ProcessFrame(frame)).result()["late"]
    frame[:] = 5.0
    shown[:] = 7.0
    assert (actor.ask(ProcessFrame(frame)).result()["late"].get() == 1).all()


def test_mistakes_are_refused_and_what_is_remembered_stays(spawn: Any, device: Device) -> None:
    graph = EffectGraph().node("t", Trail(1.0))
    actor = spawn(lambda: VideoEffectsGraph(device, graph, "t"))
    bright = device.put(np.ones((3, 3), "float32"))
    dark = device.put(np.zeros((3, 3), "float32"))
    actor.ask(ProcessFrame(bright)).result()
    for message, text in (
        (ProcessFrame(device.put(np.ones((3, 4), "float32"))), r"shape \(3, 3\), .* not \(3, 4\)"),
        (ProcessFrame(device.put(np.ones((3, 3)))), r"frame must be .* not float64\[3, 3\]"),
        (ProcessFrame(device.put(np.ones((3, 3, 2), "float32"))), "1, 3 or 4 channels"),
        (ProcessClip(device.put(np.ones((0, 3, 3), "float32"))), "at least one, not 0"),
        (ProcessClip(bright), r"frames must be .* not float32\[3, 3\]"),
        (SetEffect("u", Trail()), r"node must be one of \['t'\], not 'u'"),
        (SetEffect("t", Blend()), "must take 1 frames, not 2"),
        (SetEffect("t", Trail(1.5)), "keep must be a number from 0 up to 1, not 1.5"),
        (SetEffect("t", "blur"), "not 'blur'"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgument, match=text):
            actor.ask(message).result()
    assert (actor.ask(ProcessFrame(dark)).result()["t"].get() == 1).all()
    for nodes, outputs, text in (
        ((("a", Sobel(), "b"),), ("a",), "node 'a' names 'b', and there is no such node"),
        ((("a", Sobel()),), ("b",), "outputs names 'b'"),
        ((("a", Sobel()), ("b", Sobel())), ("a",), "node 'b' leads to none of the outputs a"),
        ((("a", Merge("add")),), ("a",), "node 'a': Merge takes 2 frames, not 1"),
        ((("a", Sobel()), ("a", Sobel())), ("a",), "'a' is taken"),
        ((("frame", Sobel()),), ("frame",), "'frame' is taken"),
        ((("a", Merge("xor"), "frame", "frame"),), ("a",), "way must be one of add, .* 'xor'"),  # type: ignore[arg-type]
        ((("a", Sobel()),), (), "names of nodes, at least one"),
        ((("a", "blur"),), ("a",), "an effect is a filter of images, .* not 'blur'"),
        (((f"n{i}", Sobel()) for i in range(257)), ("a",), "'n256': a graph has at most 256"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            declared(device, nodes, outputs)


def declared(device: Device, nodes: Any, outputs: tuple[str, ...]) -> VideoEffectsGraph:
    graph = EffectGraph()
    for name, effect, *sources in nodes:
        graph.node(name, effect, *sources)
    return VideoEffectsGraph(device, graph, *outputs)
