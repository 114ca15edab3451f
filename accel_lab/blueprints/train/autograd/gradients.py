"""Gradients of a number, by the variables that it was computed from."""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence

from accel_lab.blueprints.train.autograd.variable import Variable
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.errors import InvalidArgument
from accel_lab.libraries import array


def gradients(
    loss: Variable, by: Sequence[Variable], *, seed: float | AccelRef = 1.0
) -> list[AccelRef]:
    """Return the gradient of `loss` by each of these variables; zeros where it does not depend.

    Nothing blocks. What was computed with is kept as long as `loss` is. There are no gradients of
    gradients.

    Parameters:
        seed: the gradient by `loss` itself; a buffer, where that is no number.

    Raises:
        InvalidArgument: `loss` has more than one element, and there is no seed for them; or
            something is no variable.
    """
    found: list[AccelRef | None] = [None] * len(by)
    for place, gradient in gradients_in_turn(loss, by, seed=seed):
        found[place] = gradient
    return [one for one in found if one is not None]


def gradients_in_turn(
    loss: Variable, by: Sequence[Variable], *, seed: float | AccelRef = 1.0
) -> Iterator[tuple[int, AccelRef]]:
    """Give each gradient with its place in `by` when it is sent, the last layer's first.

    The order depends on what was computed, and on nothing else. What does not depend comes last.

    Raises:
        InvalidArgument: as `gradients`.
    """
    _require_variables(loss, by)
    places: dict[int, list[int]] = {}
    for place, variable in enumerate(by):
        places.setdefault(id(variable), []).append(place)
    uses = _uses(loss)
    so_far: dict[int, AccelRef] = {id(loss): _seed(loss, seed)}
    # What was computed last goes first: all that it was used for was computed later.
    ready = [(-loss.number, loss)]
    while ready:
        _, variable = heapq.heappop(ready)
        gradient = so_far.pop(id(variable))
        for place in places.pop(id(variable), ()):
            yield place, gradient
        for link in variable.links:
            pulled = _as(link.pull(gradient), link.of)
            before = so_far.get(id(link.of))
            so_far[id(link.of)] = pulled if before is None else before + pulled
            uses[id(link.of)] -= 1
            if not uses[id(link.of)]:
                number = link.of.number
                # A beginning is done with at once: somebody may wait for its gradient.
                heapq.heappush(ready, (-number if link.of.links else _FIRST - number, link.of))
    for left in places.values():
        for place in left:
            ref = by[place].value
            yield place, array.zeros(ref.device, ref.shape, ref.dtype)


def _require_variables(loss: object, by: Sequence[object]) -> None:
    if not isinstance(loss, Variable):
        kind = type(loss).__name__
        raise InvalidArgument(f"gradients: loss is to be a variable, not {kind}")
    strange = [type(one).__name__ for one in by if not isinstance(one, Variable)]
    if strange:
        raise InvalidArgument(f"gradients: by is to be variables, not {strange[0]}")


_FIRST = -(1 << 62)


def _uses(loss: Variable) -> Counter[int]:
    """Return how often each variable was used on the way to the loss."""
    uses: Counter[int] = Counter()
    seen, ahead = {id(loss)}, [loss]
    while ahead:
        for link in ahead.pop().links:
            uses[id(link.of)] += 1
            if id(link.of) not in seen:
                seen.add(id(link.of))
                ahead.append(link.of)
    return uses


def _seed(loss: Variable, seed: float | AccelRef) -> AccelRef:
    if isinstance(seed, AccelRef):
        if seed.shape != loss.shape:
            text = f"seed {list(seed.shape)} is to have the shape of loss, {list(loss.shape)}"
            raise InvalidArgument(f"gradients: {text}")
        return seed
    if loss.size != 1:
        text = f"loss is {loss.value.label}: take its sum or mean, or give a seed of its shape"
        raise InvalidArgument(f"gradients: {text}")
    return array.full(loss.device, loss.shape, float(seed), loss.dtype)


def _as(gradient: AccelRef, of: Variable) -> AccelRef:
    """Return a gradient in the dtype of what it is of."""
    return gradient if gradient.dtype == of.dtype else gradient.astype(of.dtype)
