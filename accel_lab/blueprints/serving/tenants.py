"""Who may ask, with what token, for how much."""

import secrets
import threading
from dataclasses import dataclass

from accel_lab.blueprints.patterns import Tenant
from accel_lab.blueprints.serving.errors import BudgetSpent
from accel_lab.errors import InvalidArgument
from accel_lab.pipeline.stage import require_count


@dataclass(frozen=True, kw_only=True)
class Client(Tenant):
    """A tenant of a deployment.

    Parameters:
        weight, max_waiting, max_running: as of `Tenant`.
        budget: how many tokens, of prompts and answers, it may have; None for no limit.
        token: the bearer token by which it is known; a random one when not given.
    """

    budget: int | None = None
    token: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget is not None:
            require_count(self.budget, "budget", 0)
        if self.token is not None and (not self.token.isascii() or not self.token.isprintable()):
            raise InvalidArgument("token is printable ASCII, and this one is not")
        if self.token is not None and not self.token.strip():
            raise InvalidArgument("token is empty; give None for a random one")


class Account:
    """What one tenant has used, and may use; any thread."""

    def __init__(self, name: str, client: Client) -> None:
        self.name, self.client = name, client
        self.token = client.token or secrets.token_urlsafe(24)
        self._lock = threading.Lock()
        self._left, self._used = client.budget, 0

    @property
    def used(self) -> int:
        """How many tokens it had."""
        return self._used

    @property
    def left(self) -> int | None:
        """How many it may have yet; None for no limit."""
        return self._left

    def take(self, tokens: int) -> None:
        """Set tokens aside.

        Raises:
            BudgetSpent: there are not so many.
        """
        with self._lock:
            if self._left is not None:
                if tokens > self._left:
                    text = f"tenant {self.name} asked for {tokens} tokens and has {self._left} left"
                    raise BudgetSpent(text, tenant=self.name, wanted=tokens, left=self._left)
                self._left -= tokens
            self._used += tokens

    def give_back(self, tokens: int) -> None:
        """Take back what was set aside and not used."""
        with self._lock:
            self._used -= tokens
            if self._left is not None:
                self._left += tokens

    def grant(self, tokens: int) -> None:
        """Add to what it may have."""
        with self._lock:
            if self._left is not None:
                self._left += tokens
