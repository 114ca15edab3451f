"""Modules: the kernels and variables of one source, or of a cubin, PTX, LTO-IR or a fatbin.

Their kernels are launched as those of `jit`. On `host` a module is built from source alone.
"""

import os
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, cast

import numpy as np

from accel_lab.actor.reply import Reply
from accel_lab.compute.device import Device, device_first
from accel_lab.compute.execution.launch import Launch, LibraryActor, handles
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.user_code.call import answer_parts
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.jit.kernel import texts_of
from accel_lab.libraries.jit.library import Loaded
from accel_lab.libraries.jit.messages import LoadedModule
from accel_lab.libraries.jit.module_globals import declared_in
from accel_lab.libraries.module.found_kernels import kernels_in
from accel_lab.libraries.module.messages import Binary, Build, Form, Kind, Load, ModuleFacts
from accel_lab.libraries.module.module import Module, ModuleKernel

__all__ = [
    "Binary",
    "Build",
    "Load",
    "Module",
    "ModuleFacts",
    "ModuleKernel",
    "binary",
    "build",
    "load",
]

File: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview
_ELF, _CUDA = b"\x7fELF", 190
_STARTS: Mapping[bytes, Kind] = {b"P\xedU\xba": "fatbin", b"\xedCN\x7f": "lto"}


def build(
    device: Device,
    source: str,
    names: Iterable[str] | None = None,
    *,
    options: Iterable[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Module:
    """Compile CUDA C++ as one module; does not block.

    Parameters:
        names: its kernels, as "add" or "scale<float>"; all `__global__` functions that are no
            templates if not given.
        options, headers: as those of `jit.compile`.

    Raises:
        InvalidArgument: no such name or option, no kernel, or more than a message holds (1 MiB).
    """
    device = device_first(device)
    options, headers = texts_of(options, headers)
    if names is None:
        given: Any = source  # `Build` refuses what is no text
        names = kernels_in(source) if isinstance(given, str) else ()
    wanted = (names,) if isinstance(names, str) else tuple(names)
    message = Build(source, wanted, options, headers)
    texts = source, *headers.values()
    return Module(device, lambda: device.ask(message), lambda: declared_in(texts))


def load(device: Device, *files: File, kinds: Iterable[Kind] | None = None) -> Module:
    """Load a cubin, PTX, LTO-IR or a fatbin, or link several to one module; does not block.

    Parameters:
        files: paths, or the bytes themselves.
        kinds: what each of them is, where that is not seen by its first bytes.

    Raises:
        InvalidArgument: it is none of these.
        OSError: a file cannot be read.
        UnsupportedDtype: the backend has no binaries.
    """
    device = device_first(device)
    images = [_bytes_of(file) for file in files]
    told = tuple(map(_kind_of, images)) if kinds is None else tuple(kinds)

    def make() -> Handle[LoadedModule]:
        refs = [device.put(np.frombuffer(image, np.uint8)) for image in images]
        return device.ask(Load(tuple(refs), told))

    return Module(device, make)


def binary(
    device: Device,
    source: str,
    form: Form = "cubin",
    *,
    linkable: bool = False,
    options: Iterable[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Reply[bytes]:
    """Compile CUDA C++ to the bytes of a file for this device.

    Parameters:
        form: "cubin", "ptx" or "lto".
        linkable: whether it may refer to what other files define.

    Raises:
        InvalidArgument: no such form or option.
        UnsupportedDtype: the backend has no binaries.
    """
    given, texts = texts_of(options, headers)
    return device_first(device).ask(Binary(source, form, bool(linkable), given, texts))


class LoadedCode(Protocol):
    """A module in its context.

    Attributes:
        nbytes: the size of the code.
    """

    nbytes: int

    def facts(self) -> ModuleFacts:
        """Return what is known of it."""

    def kernel(self, name: str, parameters: str) -> Loaded:
        """Return a kernel; raises InvalidArgument if there is none, or the types do not fit."""


class ModuleLibrary(Protocol):
    """What every backend provides."""

    def build(self, program: Build) -> Any:
        """Compile, or find it on disk; any thread, and it may block. Raises CompileError."""

    def loaded(self, built: Any) -> LoadedCode:
        """Make what was built fit for launches; on the dispatcher thread."""


class Binaries(Protocol):
    """What a backend provides, too, that loads binaries."""

    def link(self, kinds: tuple[str, ...], images: list[Any]) -> Any:
        """Link arrays of bytes; a worker's thread. Raises CompileError."""

    def linked(self, made: Any) -> LoadedCode:
        """Make what was linked fit for launches; on the dispatcher thread."""

    def binary(self, program: Binary) -> bytes:
        """Compile; any thread, and it may block. Raises CompileError."""


class ModuleActor(LibraryActor):
    """Builds and loads modules in one context; `jit` launches their kernels."""

    library: ClassVar = "module"
    lib: ModuleLibrary

    @handles(Build)
    def build(self, m: Build, launch: Launch) -> None:
        """Compile beside the dispatcher."""
        launch.defer(lambda: self.lib.build(m), lambda built: _keep(self.lib.loaded(built), launch))

    @handles(Load)
    def load(self, m: Load, launch: Launch) -> None:
        """Fetch the bytes and link them beside the dispatcher."""
        images, lib = [launch.read(image) for image in m.images], cast("Binaries", self.lib)
        launch.blocking(
            lambda _: lib.link(m.kinds, images),
            lambda made: _keep(lib.linked(made), launch),
        )

    @handles(Binary)
    def binary(self, m: Binary, launch: Launch) -> None:
        """Compile beside the dispatcher, and answer with the bytes."""

        def answer(data: bytes) -> None:
            launch.finish = lambda: answer_parts(launch.seq, pickle.dumps(data))

        launch.defer(lambda: cast("Binaries", self.lib).binary(m), answer)


def _keep(code: LoadedCode, launch: Launch) -> None:
    """Keep a module, and tell what is in it."""
    launch.keep(code, code.nbytes)
    facts = pickle.dumps(code.facts())
    launch.finish = lambda: answer_parts(launch.seq, facts)


def _bytes_of(file: File) -> bytes:
    if isinstance(file, bytes | bytearray | memoryview):
        return bytes(file)
    if isinstance(file, str | os.PathLike):
        return Path(file).read_bytes()
    raise InvalidArgument(f"load takes paths and bytes, not {file!r}")


def _kind_of(image: bytes) -> Kind:
    """Return what a file is, by its first bytes.

    Raises:
        InvalidArgument: it is none that can be loaded.
    """
    if image[:4] == _ELF and int.from_bytes(image[18:20], "little") == _CUDA:
        return "cubin"
    if image[:4] in _STARTS:
        return _STARTS[image[:4]]
    if b".version" in image and b".target" in image:
        return "ptx"
    raise InvalidArgument(
        f"load takes a cubin, PTX, LTO-IR or a fatbin, and what begins with {image[:8]!r} is none; "
        "say what it is, as kinds=('lto',)"
    )
