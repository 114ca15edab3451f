"""Make buffers again, by what a commit says of them."""

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import msgspec

from accel_lab.compute.arrays.dtypes import itemsize
from accel_lab.compute.device import Device
from accel_lab.compute.lineage.recorded_message import decode, step_of
from accel_lab.compute.message.buffer import AccelRef, Ref
from accel_lab.errors import AccelError, SessionDamaged, SessionError
from accel_lab.journal.entries.entry import kind_of
from accel_lab.journal.replay.messages import message_of, refusal
from accel_lab.journal.replay.repeat import made_by, restored
from accel_lab.session.buffers.record import Records, runs_code
from accel_lab.session.store.commit import Put, Recipe, Send
from accel_lab.session.store.folder import Folder

NEEDS_LEAVE = "it is made by code, which needs leave to run: open the folder with run_code=True"


class Rebuilding:
    """Makes buffers of a folder again, on the devices of a system.

    Parameters:
        device: returns the device that stands for a recorded one.
        learn: told of a buffer that was just made of kept bytes, and of their key.
        may_run: whether code in the folder may run.
    """

    def __init__(
        self,
        folder: Folder,
        records: Records,
        device: Callable[[str], Device],
        learn: Callable[[AccelRef, str], object],
        *,
        may_run: bool,
    ) -> None:
        self._learn = learn
        self._folder = folder
        self._records = records
        self._device = device
        self._may_run = may_run

    def recipe(self, key: str) -> Recipe:
        """Return a recipe.

        Raises:
            SessionDamaged: it is not there, or none.
        """
        path = self._folder.content_path(key)
        try:
            return msgspec.msgpack.decode(self._folder.content(key), type=Recipe)
        except msgspec.MsgspecError as error:
            raise SessionDamaged(f"{path} is damaged: {error}", path=str(path)) from error

    def messages(self, key: str) -> dict[tuple[str, str, int], str]:
        """Return the messages of a recipe: session, device and number, with what they are.

        Those are left out that only make views: they change nothing.

        Raises:
            AccelError: as `cook`.
        """
        recipe, found = self.recipe(key), dict[tuple[str, str, int], str]()
        for data in self._records.messages(recipe):
            raw: Any = decode(data)
            step = step_of(raw, b"")
            if step.shares and not step.writes and not runs_code(raw):
                continue
            text = f"{kind_of(raw[3][0]).__name__}, message {raw[0]} to {recipe.device}"
            found[recipe.session, recipe.device, raw[0]] = text
        return found

    def cook(self, key: str, wanted: set[int]) -> dict[int, Ref[Any]]:
        """Run the messages of a recipe; return these buffers, which are made then.

        Raises:
            SessionError: there is code and no leave to run it, or a message cannot be sent again.
            SessionDamaged: something of it is not in the folder.
            AccelError: a message failed.
        """
        recipe = self.recipe(key)
        messages: list[Any] = list(map(decode, self._records.messages(recipe)))
        if not self._may_run and any(map(runs_code, messages)):
            remedy = "Give leave only to what you would run yourself."
            raise SessionError(NEEDS_LEAVE, remedy=remedy)
        for raw in messages:
            if why := refusal(kind_of(raw[3][0])):
                raise SessionError(f"the folder has a message that is not sent again: {why}")
        device, ahead = self._device(recipe.device), iter(messages)
        steps = [(step, next(ahead) if isinstance(step, Send) else None) for step in recipe.steps]
        ends = _last_uses([raw for _, raw in steps], wanted)
        keys = [step.key for step, raw in steps if raw is None or step_of(raw, b"").in_arena]
        refs: dict[int, Ref[Any]] = {}
        with closing(self._records.contents(keys)) as contents:
            for position, (step, raw) in enumerate(steps):
                if isinstance(step, Put):
                    data = b"".join(next(contents))
                    refs[step.id] = restored(device, data, step.shape, step.dtype, step.axes)
                elif raw is not None:
                    pieces = next(contents) if step_of(raw, b"").in_arena else None
                    send_again(device, raw, pieces, step.key, refs)
                for id_ in ends.get(position, ()):
                    refs.pop(id_, None)
        for id_ in wanted:
            if id_ not in refs:
                text = f"the messages of {recipe.device} do not make buffer {id_} again"
                raise SessionError(text)
            refs[id_].result()
        return {id_: refs[id_] for id_ in wanted}

    def thaw(self, key: str, shape: list[int], dtype: str, name: str) -> Ref[Any]:
        """Return a buffer of kept bytes.

        Raises:
            SessionDamaged: they are not there, or others.
        """
        try:
            nbytes = math.prod(shape) * itemsize(dtype)
        except (AccelError, TypeError) as error:
            path = str(self._folder.content_path(key))
            raise SessionDamaged(f"{path} is damaged: {error}", path=path) from error
        content = self._folder.streamed(key, nbytes)
        ref = self._device(name).put_parts(tuple(shape), dtype, content.parts)
        content.require_whole()
        ref.result()
        self._learn(ref, key)
        return ref


def send_again(
    device: Device,
    raw: list[Any],
    data: Sequence[bytes] | None,
    key: str,
    refs: dict[int, Ref[Any]],
) -> None:
    """Send a recorded message, and enter what it makes.

    Parameters:
        raw: as decoded.
        data: what it took from the arena, in pieces, and `key` what that is named by.
        refs: the buffers by the numbers that they had.
    """
    step = step_of(raw, b"")
    message = message_of(raw[3], refs)
    reply = device.repeat(message, raw[2], data, key)
    if step.made:
        made = made_by(step, message, reply)
        refs.update({id_ or step.made: ref for id_, ref in made.items()})


def _last_uses(raws: list[list[Any] | None], kept: set[int]) -> dict[int, list[int]]:
    """Return, by the position behind which nothing needs them, the buffers to let go of."""
    last: dict[int, int] = {}
    for position, raw in enumerate(raws):
        if raw is not None:
            step = step_of(raw, b"")
            last.update(dict.fromkeys((*step.operands, *step.makes), position))
    ends: dict[int, list[int]] = {}
    for id_, position in last.items():
        if id_ not in kept:
            ends.setdefault(position, []).append(id_)
    return ends
