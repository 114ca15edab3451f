"""Modules on cuda: cubins of NVRTC, nvJitLink or whoever made them, loaded by the driver."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from cupy.cuda import driver

from accel_lab.backends.cuda.jit import nvrtc
from accel_lab.backends.cuda.jit.cubin import data_of
from accel_lab.backends.cuda.jit.kernel import Code, CudaKernel, Image, Origin
from accel_lab.backends.cuda.jit.library import Built, CudaJit
from accel_lab.backends.cuda.module.contents import (
    is_relocatable,
    kernels_of,
    readable,
    variables_in,
)
from accel_lab.backends.cuda.module.driver_image import DriverImage
from accel_lab.backends.cuda.module.linker import linked, require_linkable
from accel_lab.errors import InvalidArgument, LibraryError
from accel_lab.libraries.jit.module_globals import Place as Variable
from accel_lab.libraries.jit.module_globals import declared_in
from accel_lab.libraries.jit.signature import Parameter, table_of
from accel_lab.libraries.jit.signature import parameters_of as parameters_in_table
from accel_lab.libraries.module.messages import Binary, Build, ModuleFacts
from accel_lab.libraries.module.parameter_types import (
    Place,
    parameters_of,
    signature_in,
    sizes_text,
)

if TYPE_CHECKING:
    from accel_lab.backends.cuda.device.device import CudaDevice

_FORMS = {"cubin": "CUBIN", "ptx": "PTX", "lto": "LTOIR"}


class Entry(NamedTuple):
    """A kernel of a module that is loaded.

    Attributes:
        parameters: where the compiler has told them; else None.
        text: their C++ types, where the symbol tells them; else None.
        places: where they lie.
    """

    symbol: str
    parameters: tuple[Parameter, ...] | None = None
    text: str | None = None
    places: tuple[Place, ...] = ()

    def told(self, name: str) -> tuple[str, ...]:
        """Return the types, or the sizes where nothing tells the types."""
        if self.parameters is not None:
            return tuple(one.text for one in self.parameters)
        if self.text is not None:
            return tuple(one.text for one in parameters_of(name, self.text, self.places))
        return tuple(f"{one.nbytes} bytes" for one in self.places)


class ModuleKernel(CudaKernel):
    """A kernel that lets go of its module when the streams are behind its launches."""

    def close(self) -> None:
        """Let go of the code; it is unloaded with the last that has it."""
        self._code = None


class CudaCode:
    """Loaded code, with all its kernels."""

    def __init__(
        self,
        code: Code,
        entries: dict[str, Entry],
        variables: dict[str, bool] | None,
        origin: Origin,
    ) -> None:
        self.nbytes = code.nbytes
        self._code: Code | None = code._replace(place=_Variables(code))
        self._entries = entries
        self._variables = variables
        self._origin = origin

    def facts(self) -> ModuleFacts:
        """Return what is known of it."""
        kernels = {name: entry.told(name) for name, entry in self._entries.items()}
        return ModuleFacts(kernels, self._variables, self._origin.log, self._origin.cached)

    def kernel(self, name: str, parameters: str) -> ModuleKernel:
        """Return a kernel by its name or its symbol.

        Raises:
            InvalidArgument: there is none, nothing tells its parameters, or they do not fit.
        """
        assert self._code is not None
        found = [one for at, one in self._entries.items() if name in (at, one.symbol)]
        if not found:
            known = ", ".join(self._entries) or "none"
            raise InvalidArgument(f"the module has no kernel {name!r}; it has: {known}")
        types = _parameters(name, found[0], parameters)
        return ModuleKernel(self._code, found[0].symbol, name, types, self._origin)

    def close(self) -> None:
        """Let go of the code; it is unloaded with the last kernel that has it."""
        self._code = None


class _Variables:
    """Finds the variables of code; all its kernels have all of them, so none is missing."""

    def __init__(self, code: Code) -> None:
        self._place = code.place

    def __call__(self, variable: str) -> Variable:
        found = self._place(variable)
        if found is None:
            raise InvalidArgument(f"the module has no variable {variable!r}")
        return found


class Linked(NamedTuple):
    """What can be loaded: a cubin, or a fatbin that only the driver can open."""

    data: bytes
    log: str
    is_cubin: bool


class CudaModule:
    """Builds, links and loads; used by the dispatcher thread, but for what says otherwise."""

    def __init__(self, device: "CudaDevice") -> None:
        self._jit = CudaJit(device)
        self._modules = 0

    def build(self, program: Build) -> Built:
        """Compile, or find it; any thread.

        Raises:
            CompileError: it does not compile.
        """
        return self._jit.build(program)

    def loaded(self, built: Built) -> CudaCode:
        """Load the cubin."""
        cubin, program = built.compiled.cubin, built.program
        entries = {
            name: Entry(symbol, parameters_in_table(data_of(cubin, table_of(i))))
            for i, (name, symbol) in enumerate(
                zip(program.names, built.compiled.symbols, strict=True)
            )
        }
        variables = declared_in((program.source, *program.headers.values()))
        return self._loaded(Image(cubin, driver.moduleUnload), entries, variables, built.origin)

    def link(self, kinds: tuple[str, ...], images: list[Any]) -> Linked:
        """Fetch and link images; a worker's thread.

        Raises:
            CompileError: they do not link.
            InvalidArgument: a cubin is linked already, and not alone.
        """
        return self.joined(kinds, [image.get().tobytes() for image in images])

    def joined(self, kinds: tuple[str, ...], images: list[bytes]) -> Linked:
        """Link bytes, as `link`."""
        whole = [
            kind == "cubin" and not is_relocatable(image)
            for kind, image in zip(kinds, images, strict=True)
        ]
        if whole == [True]:
            return Linked(images[0], "", is_cubin=True)
        if any(whole):
            raise require_linkable(whole.index(True))
        cubin, log = linked(kinds, images, self._jit.architecture)
        if "fatbin" in kinds and not kernels_of(cubin):
            # What is linked already is dropped in silence; the driver takes it.
            if len(kinds) > 1:
                raise require_linkable(kinds.index("fatbin"))
            return Linked(images[0], log, is_cubin=False)
        return Linked(cubin, log, is_cubin=True)

    def linked(self, made: Linked) -> CudaCode:
        """Load what was linked."""
        if made.is_cubin:
            image = Image(made.data, driver.moduleUnload)
            entries = entries_of(kernels_of(made.data))
            return self._loaded(image, entries, variables_in(made.data), Origin(made.log))
        fatbin = DriverImage(made.data)
        return self._loaded(fatbin, entries_of(fatbin.kernels()), None, Origin(made.log))

    def binary(self, program: Binary) -> bytes:
        """Compile; any thread.

        Raises:
            CompileError: it does not compile.
        """
        return binary_for(program, self._jit.architecture)

    def statistics(self) -> Mapping[str, int]:
        """Count modules."""
        return {"modules": self._modules}

    def _loaded(
        self,
        image: Image | DriverImage,
        entries: dict[str, Entry],
        variables: dict[str, bool] | None,
        origin: Origin,
    ) -> CudaCode:
        self._modules += 1
        return CudaCode(self._jit.code(image), entries, variables, origin)


def binary_for(program: Binary, architecture: str) -> bytes:
    """Compile for an architecture, as `90`; needs no GPU.

    Raises:
        CompileError: it does not compile.
    """
    given = nvrtc.options(program, architecture)
    if program.linkable or program.form == "lto":
        given += ("-rdc=true",)
    if program.form == "lto":
        given += ("-dlto",)
    with nvrtc.compiled(program, program.text, given) as (handle, _):
        return _read(_FORMS[program.form], handle)


def _read(form: str, handle: int) -> bytes:
    """Return what NVRTC has made, whole: CuPy's functions leave out the last byte, as of a text."""
    from cuda.bindings import nvrtc as bindings

    made = bindings.nvrtcProgram(handle)
    _, size = getattr(bindings, f"nvrtcGet{form}Size")(made)
    data = bytearray(size)
    (status,) = getattr(bindings, f"nvrtcGet{form}")(made, data)
    if status:
        raise LibraryError(
            f"NVRTC has no {form} of this source: {status}", library="module", name=str(status)
        )
    return bytes(data)


def entries_of(kernels: Mapping[str, tuple[Place, ...]]) -> dict[str, Entry]:
    """Return the kernels of a binary by their names in C++; those of one name by their symbols."""
    named: dict[str, list[Entry]] = {}
    for symbol, places in kernels.items():
        signature = signature_in(readable(symbol))
        name, text = (symbol, None) if signature is None else signature
        named.setdefault(name, []).append(Entry(symbol, text=text, places=places))
    return {
        name if len(several) == 1 else one.symbol: one
        for name, several in named.items()
        for one in several
    }


def _parameters(name: str, entry: Entry, given: str) -> tuple[Parameter, ...]:
    if entry.parameters is not None:
        if given:
            raise InvalidArgument(f"the source tells the parameters of {name}; leave them out")
        return entry.parameters
    text = given or entry.text
    if text is None and entry.places:
        raise InvalidArgument(
            f"the module does not tell the types of the parameters of {name} "
            f"{sizes_text(entry.places)}; give them, as "
            f'module.kernel("{name}", "float* y, const float* x, int n")'
        )
    return parameters_of(name, text or "", entry.places)
