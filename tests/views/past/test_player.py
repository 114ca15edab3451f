"""A position in a past, and the scene there."""

import threading
import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_lab.actor.events import Event
from accel_lab.compute.events.lifecycle import GenerationChanged, RequestFailed
from accel_lab.compute.events.samples import MemorySampled, Slice, TreeSampled, WorkTraced
from accel_lab.compute.events.tree import Node
from accel_lab.errors import InvalidArgument, JournalUnavailable
from accel_lab.views.past import player as module
from accel_lab.views.past.player import QUIET_S, Line, Player
from accel_lab.views.past.recording import Recording
from accel_lab.views.scene.fact_lines import encode, header
from accel_lab.views.scene.scene import Scene


class Kept:
    """A past of facts in memory; counts how many were folded."""

    name, kind, dropped, damage = "kept", "recording", 0, ""
    turns: Sequence[int] = ()

    def __init__(self, facts: Sequence[Event]) -> None:
        self.facts = facts
        self.folded = 0

    @property
    def times(self) -> Sequence[float]:
        return [fact.at for fact in self.facts]

    @property
    def faults(self) -> Sequence[int]:
        return [n for n, fact in enumerate(self.facts) if isinstance(fact, RequestFailed)]

    def read(self) -> None:
        """Nothing comes."""

    def step(self, number: int) -> None:
        """Nothing stops a step."""

    def fold(self) -> "KeptFold":
        return KeptFold(self, Scene())

    def lines(self, steps: range) -> Sequence[Line]:
        return [Line(self.facts[n].at, "", 0, str(n), "", "") for n in steps]


class KeptFold:
    """Its scene."""

    def __init__(self, past: Kept, scene: Scene) -> None:
        self.scene = scene
        self._past = past

    def advance(self, steps: range) -> None:
        for number in steps:
            self._past.step(number)
            self._past.folded += 1
            self.scene.add(self._past.facts[number])

    def copy(self) -> "KeptFold":
        return KeptFold(self._past, self.scene.copy())


class Clock:
    """Seconds that a test lets pass."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def turn(at: float) -> GenerationChanged:
    return GenerationChanged(device="gpu0", before=int(at), after=int(at) + 1, at=at)


def tree(at: float) -> TreeSampled:
    return TreeSampled(root=Node(name=f"{at}", path="", kind="system", state="running"), at=at)


def fault(at: float) -> RequestFailed:
    return RequestFailed(device="gpu0", message="Gemm", error="no", cell=None, at=at)


def folded(facts: Sequence[Event]) -> Scene:
    scene = Scene()
    for fact in facts:
        scene.add(fact)
    return scene


def memory(at: float, generation: int) -> MemorySampled:
    return MemorySampled(
        device="gpu0", generation=generation, used_bytes=0, total_bytes=None, blocks=(), at=at
    )


def work(at: float) -> WorkTraced:
    done = (Slice(int(at), "Gemm", "blas", "kernel", at, at + 1),)
    return WorkTraced(device="gpu0", generation=1, done=done, running=(), at=at)


FACTS = st.lists(
    st.one_of(
        st.builds(lambda: turn(1.0)),
        st.builds(lambda: tree(1.0)),
        st.builds(memory, st.just(1.0), st.integers(1, 3)),
        st.builds(lambda: work(1.0)),
        st.builds(lambda: fault(1.0)),
    ),
    max_size=40,
)


def in_order(facts: Sequence[Event]) -> list[Event]:
    """Give facts times and generations that ascend."""
    generation = 1
    ordered: list[Event] = []
    kinds = {GenerationChanged: turn, TreeSampled: tree, WorkTraced: work, RequestFailed: fault}
    for at, fact in enumerate(facts, 1):
        if isinstance(fact, MemorySampled):
            generation = max(generation, fact.generation)
            ordered.append(memory(float(at), generation))
        else:
            ordered.append(kinds[type(fact)](float(at)))
    return ordered


@settings(max_examples=60)
@given(facts=FACTS, moves=st.lists(st.integers(-3, 45), max_size=12))
def test_wherever_it_goes_the_scene_is_what_was_then(
    facts: list[Event], moves: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    facts = in_order(facts)
    path = tmp_path_factory.mktemp("player") / "facts.jsonl"
    path.write_bytes(header("lab") + b"".join(map(encode, facts)))
    stride, module.STRIDE = module.STRIDE, 4
    try:
        for past in (Kept(facts), Recording.open(path)):
            player = Player(past)
            for move in moves:
                player.seek(move)
                position = min(max(0, move), len(facts))
                assert player.position == position
                assert vars(player.look()) == vars(folded(facts[:position]))
    finally:
        module.STRIDE = stride


def test_it_begins_at_the_end() -> None:
    facts = [turn(1.0), tree(2.0)]
    player = Player(Kept(facts))
    assert player.position == 2
    assert player.at == 2.0
    assert vars(player.look()) == vars(folded(facts))
    assert player.lab is None
    assert not player.ended


def test_a_step_pauses_and_stays_within_the_past() -> None:
    player = Player(Kept([turn(1.0), turn(2.0), turn(3.0)]))
    player.seek(0)
    player.play()
    player.step()
    assert (player.position, player.playing) == (2, False)
    player.step(-5)
    assert player.position == 0
    player.step(99)
    assert player.position == 3


def test_the_next_fault_is_the_last_step_of_its_scene() -> None:
    player = Player(Kept([turn(1.0), fault(2.0), turn(3.0), fault(4.0)]))
    player.seek(0)
    assert player.next_fault()
    assert player.position == 2
    assert player.next_fault()
    assert player.position == 4
    assert not player.next_fault()
    assert player.position == 4


def test_a_moment_is_found_by_its_time() -> None:
    player = Player(Kept([turn(1.0), turn(2.0), turn(2.0), turn(3.0)]))
    for at, position in ((0.5, 0), (1.0, 1), (2.0, 3), (2.9, 3), (9.0, 4)):
        player.seek_time(at)
        assert player.position == position


def played(*facts: Event) -> tuple[Player, Clock]:
    clock = Clock()
    player = Player(Kept(facts), clock=clock)
    player.seek(0)
    return player, clock


def test_it_plays_as_fast_as_it_was_or_as_one_says() -> None:
    player, clock = played(turn(10.0), turn(11.0), turn(12.0), turn(13.0))
    player.play()
    assert (player.position, player.playing) == (1, True)
    clock.now += 1.0
    assert player.position == 2
    player.play(0.5)
    clock.now += 1.0
    assert player.position == 2
    assert player.at == pytest.approx(11.5)
    clock.now += 1.0
    assert player.position == 3
    player.play(16)
    clock.now += 0.1
    assert (player.position, player.playing) == (4, False)
    assert player.at == 13.0


def test_a_long_quiet_is_cut_to_two_seconds() -> None:
    player, clock = played(turn(0.0), turn(3600.0), turn(3601.0))
    player.play()
    assert player.position == 1
    clock.now += QUIET_S - 0.01
    assert player.position == 1
    clock.now += 0.02
    assert player.position == 2
    assert player.playing
    clock.now += 1.0
    assert player.position == 3


def test_play_at_the_end_begins_anew() -> None:
    player, _ = played(turn(1.0), turn(2.0))
    player.seek(2)
    player.play()
    assert player.position == 1


def test_a_seek_while_it_plays_goes_on_from_there() -> None:
    player, clock = played(turn(0.0), turn(1.0), turn(2.0), turn(3.0))
    player.play()
    player.seek(3)
    clock.now += 0.5
    assert (player.position, player.playing) == (3, True)
    clock.now += 0.6
    assert player.position == 4


def test_a_pause_stays() -> None:
    player, clock = played(turn(0.0), turn(1.0))
    player.play()
    player.pause()
    clock.now += 9.0
    assert (player.position, player.playing) == (1, False)


def test_a_speed_that_is_not_positive_is_refused() -> None:
    player, _ = played(turn(1.0), turn(2.0))
    for speed in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidArgument, match="a finite speed above 0"):
            player.play(speed)
        with pytest.raises(InvalidArgument, match="a finite speed above 0"):
            player.speed = speed
    player.play()
    assert (player.playing, player.speed) == (True, 1.0)


def test_who_watches_is_told_of_every_move() -> None:
    player, clock = played(turn(0.0), turn(1.0))
    told: list[int] = []
    end = player.on_news(lambda: told.append(1))
    player.seek(1)
    assert len(told) == 1
    player.play()
    clock.now += 1.5
    before = len(told)
    player.look()
    assert len(told) == before + 1
    end()
    player.seek(0)
    assert len(told) == before + 1


def test_an_empty_past_has_an_empty_scene() -> None:
    player = Player(Kept([]))
    player.play()
    player.step()
    assert not player.next_fault()
    assert (player.position, player.at, player.playing) == (0, 0.0, False)
    assert vars(player.look()) == vars(Scene())


def test_a_step_on_folds_one_and_a_step_back_no_more_than_a_stride() -> None:
    past = Kept([turn(float(at)) for at in range(100_000)])
    player = Player(past)
    player.look()
    stride = max(module.STRIDE, len(past.facts) // module.SNAPSHOTS)
    player.seek(51_000)
    player.look()
    past.folded = 0
    player.step(1)
    player.look()
    assert past.folded == 1
    past.folded = 0
    player.step(-1)
    player.look()
    assert past.folded <= stride
    past.folded = 0
    begin = time.perf_counter()
    for position in (99_000, 3, 42_000, 77_777):
        player.seek(position)
        assert player.look().counted == position
    assert past.folded <= 4 * stride
    assert time.perf_counter() - begin < 4.0  # a hundredth of that on a machine by itself


@pytest.mark.parametrize("at", [250, 700, 1150])
@pytest.mark.parametrize("error", [JournalUnavailable("it is away"), KeyboardInterrupt()])
def test_what_stops_a_fold_has_no_step_folded_twice(at: int, error: BaseException) -> None:
    """As when the store is away for a moment, or the user stops the cell."""

    class Stopping(Kept):
        stops = True

        def step(self, number: int) -> None:
            if self.stops and number == at:
                self.stops = False
                raise error

    past = Stopping([turn(float(i)) for i in range(1, 1201)])
    player = Player(past)
    player.seek(0)
    with pytest.raises(type(error)):  # noqa: PT012 - whichever of them folds
        player.seek(1200)
        player.look()
    player.seek(1200)
    scene = player.look()
    assert [fact for _, fact in scene.facts] == past.facts[-len(scene.facts) :]
    assert scene.counted == 1200


def test_who_looks_does_not_wait_for_who_begins_anew_and_they_for_them() -> None:
    player = Player(Kept([turn(float(i)) for i in range(1, 1201)]))
    looks = threading.Event()

    def look() -> None:
        with player.lock:
            looks.set()
            wait_until(lambda: beginner.is_alive() and player._preparing.locked(), 0.5)
            player.look()

    looker = threading.Thread(target=look, daemon=True)
    beginner = threading.Thread(target=player.begin, daemon=True)
    looker.start()
    assert looks.wait(10)
    beginner.start()
    for thread in (looker, beginner):
        thread.join(10)
        assert not thread.is_alive()


def wait_until(is_so: Callable[[], bool], most_s: float) -> None:
    end = time.monotonic() + most_s
    while not is_so() and time.monotonic() < end:
        time.sleep(0.001)
