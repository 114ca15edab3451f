"""A page that looks at a canvas that others play: the source of what it draws."""

from collections.abc import Callable, Iterable

from accel_lab.uncopied import Uncopied
from accel_lab.views.canvas.delivery import Delivery
from accel_lab.views.canvas.player import Player
from accel_lab.views.scene.observer import Want
from accel_lab.views.scene.scene import Scene


class Spectator(Uncopied):
    """Shows the pictures of a player at a pace of its own, and has it do nothing."""

    lab = None

    def __init__(self, player: Player) -> None:
        self.player = player
        self.lock = player.lock
        self.delivery = Delivery()

    @property
    def ended(self) -> bool:
        """Whether there will be no other picture."""
        return self.player.ended

    def look(self) -> Scene:
        """Return the scene, and offer the newest picture if the page has the one before."""
        self.delivery.offer(self.player.newest)
        return self.player.scene()

    def want(self, holder: object, wants: Iterable[Want]) -> None:
        """Sample nothing more."""

    def on_news(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call nobody: a page of a dashboard looks by its own clock."""
        del callback
        return lambda: None
