"""The errors of serving, beside those of patterns and devices."""

from accel_lab.errors import AccelError


class ServingUnavailable(AccelError):
    """A deployment was to be served, and a package of the extra `serving` is not installed."""

    remedy = "Install the packages that it names, and serve again."


class BudgetSpent(AccelError, fields=("tenant", "wanted", "left")):
    """A tenant asked for more tokens than are left to it.

    Attributes:
        tenant: whose budget.
        wanted: tokens of the prompt and, at most, of the answer.
        left: what it has.
    """

    remedy = "Ask for fewer tokens, or give it more with deployment.accounts[tenant].grant(tokens)."
    tenant: str = ""
    wanted: int = 0
    left: int = 0
