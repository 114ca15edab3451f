"""A kernel as the notebook holds it: its source, and the handle of what a context made of it."""

from collections.abc import Iterable, Mapping

from accel_lab.compute.device import Device, device_first
from accel_lab.compute.message.handle import Handle
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.jit.launchable import Launchable
from accel_lab.libraries.jit.messages import Compile, CompiledKernel
from accel_lab.libraries.jit.module_globals import Globals, declared_in


class Kernel(Launchable):
    """A CUDA C++ kernel of one device; call it to launch it.

    It can be called before it is compiled: the launches wait for it, and fail with
    `DependencyFailed` if it does not compile. When its context has been lost the next call compiles
    it again by itself. Any thread may call; nothing here blocks but `result` and `await`.

    Attributes:
        source, name, options, headers: what it was made of.
    """

    def __init__(
        self,
        device: Device,
        source: str,
        name: str,
        options: Iterable[str] = (),
        headers: Mapping[str, str] | None = None,
        globals: Globals | None = None,  # noqa: A002 - the word for them
        *,
        language: str = "cuda",
        ref: Handle[CompiledKernel] | None = None,
    ) -> None:
        device = device_first(device)
        self.source = source
        self.options, self.headers = texts_of(options, headers)
        if globals is not None and not isinstance(globals, Globals):
            raise InvalidArgument(f"globals are those of another kernel, not {globals!r}")
        program = Compile(source, name, self.options, self.headers, language)
        super().__init__(device, name, lambda: device.ask(program), ref)
        own = declared_in((source, *self.headers.values())) if globals is None else {}
        self.globals = Globals(device, own) if globals is None else globals


def texts_of(
    options: Iterable[str], headers: Mapping[str, str] | None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return options and headers as they travel.

    Raises:
        InvalidArgument: they are no texts.
    """
    try:
        return (options,) if isinstance(options, str) else tuple(options), dict(headers or {})
    except (TypeError, ValueError):
        text = f"options are texts, and headers texts by names, not {options!r} and {headers!r}"
        raise InvalidArgument(text) from None
