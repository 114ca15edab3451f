"""Kernels that were compiled, and tiles that were searched for, as a file for another machine."""

import hashlib
import json
import os
import re
import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from accel_lab.compute.device import Device, device_first
from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import FileDamaged
from accel_lab.libraries.cutlass.message import refusal

FORMAT = 1
_MANIFEST = "manifest.json"
_NAME = re.compile("[0-9a-f]{40}")
_ARCHITECTURE = re.compile("[0-9]{2,3}")
_LACKING = "the host compiles nothing for a product; export and install on cuda"


class Prebuilt(NamedTuple):
    """What a file has.

    Attributes:
        architecture: for which cards, as "90".
        templates: a hash of the templates that the kernels are made of.
        kernels: cubins by the hash of what each is made of.
        tiles: which tile a product has, by the hash of what it is.
    """

    architecture: str
    templates: str
    kernels: dict[str, bytes]
    tiles: dict[str, int]


class Export(Operation[bytes], frozen=True, array_like=True, eq=False, tag=747):
    """Return the kernels that this context has used, and the tiles it has found, as a file."""

    library: ClassVar[str] = "cutlass"
    dtypes: ClassVar = frozenset({""})
    lacking: ClassVar[str] = _LACKING

    def infer(self) -> None:
        """Announce no buffer."""


class Install(Operation[int], frozen=True, array_like=True, eq=False, tag=748):
    """Keep the kernels and the tiles of a file on the disk of the device's machine.

    It answers with how many kernels there are. A file for other cards, or of other templates, is
    refused.
    """

    library: ClassVar[str] = "cutlass"
    dtypes: ClassVar = frozenset({"uint8"})
    lacking: ClassVar[str] = _LACKING
    content: AccelRef

    def infer(self) -> None:
        """Refuse what is no file."""
        if self.content.ndim != 1:
            raise refusal(self, "content is to be the bytes of a file, a vector of uint8")


def export(device: Device, path: str | os.PathLike[str]) -> None:
    """Write the kernels that a device's products have used, and their tiles, to a file; blocks.

    Raises:
        UnsupportedDtype: the device compiles nothing for a product.
        OSError: the file cannot be written.
    """
    content = device_first(device).ask(Export()).result()
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def install(device: Device, path: str | os.PathLike[str]) -> int:
    """Have a device's machine use the kernels of a file, and return how many there are; blocks.

    They stay on its disk. Products that they are for need no compiler and no headers there.

    Raises:
        FileDamaged: it is no such file, or damaged.
        InvalidArgument: it is for cards of another compute capability, or of another version.
        UnsupportedDtype: the device compiles nothing for a product.
        OSError: the file cannot be read.
    """
    content, device = Path(path).read_bytes(), device_first(device)
    unpacked(content)
    return device.ask(Install(device.put(np.frombuffer(content, np.uint8)))).result()


def packed(prebuilt: Prebuilt) -> bytes:
    """Return the bytes of a file."""
    sums = {name: _sum(cubin) for name, cubin in prebuilt.kernels.items()}
    told = {
        "format": FORMAT,
        "architecture": prebuilt.architecture,
        "templates": prebuilt.templates,
        "kernels": sums,
        "tiles": prebuilt.tiles,
    }
    text = json.dumps(told, sort_keys=True)
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_MANIFEST, json.dumps({"sum": _sum(text.encode()), "of": text}))
        for name, cubin in prebuilt.kernels.items():
            file.writestr(name, cubin)
    return made.getvalue()


def unpacked(content: bytes) -> Prebuilt:
    """Return what a file has.

    Raises:
        FileDamaged: it is no such file, of another format, or damaged.
    """
    try:
        with zipfile.ZipFile(BytesIO(content)) as file:
            sealed = json.loads(file.read(_MANIFEST))
            if _sum(sealed["of"].encode()) != sealed["sum"]:
                raise FileDamaged("cutlass: the file's list of kernels is damaged")
            told = json.loads(sealed["of"])
            if told["format"] != FORMAT:
                text = f"the file is of format {told['format']}, and {FORMAT} is read here"
                raise FileDamaged(f"cutlass: {text}; export it again")
            sums, tiles = told["kernels"], told["tiles"]
            if not all(map(_NAME.fullmatch, (*sums, *tiles))):
                raise FileDamaged("cutlass: the file names a kernel by what is no hash")
            if not all(type(tile) is int for tile in tiles.values()):
                raise FileDamaged("cutlass: a tile of the file is no number")
            made_for = _ARCHITECTURE.fullmatch(told["architecture"]), told["templates"]
            if not all(made_for):
                raise FileDamaged(
                    "cutlass: the file does not say which cards it is for; it is damaged"
                )
            kernels = {name: file.read(name) for name in sums}
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
        *(KeyError, TypeError, ValueError, AttributeError, OSError),
    ) as error:
        why = f"{type(error).__name__}: {error}"
        raise FileDamaged(
            f"cutlass: this is no file of kernels, or a damaged one ({why})"
        ) from error
    for name, cubin in kernels.items():
        if _sum(cubin) != sums[name]:
            raise FileDamaged(f"cutlass: kernel {name} of the file is damaged")
    return Prebuilt(told["architecture"], told["templates"], kernels, tiles)


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
