"""The messages of `module`: compile one, load one, make a binary."""

from typing import ClassVar, Literal, NamedTuple, TypeAlias, get_args

from accel_lab.compute.message.buffer import AccelRef
from accel_lab.compute.message.handle import Handle
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import named
from accel_lab.libraries.jit.messages import LoadedModule
from accel_lab.libraries.jit.program import as_compiled, base_of, require_names, require_source

Form: TypeAlias = Literal["cubin", "ptx", "lto"]
Kind: TypeAlias = Literal["cubin", "ptx", "lto", "fatbin"]
FORMS: tuple[str, ...] = get_args(Form)
KINDS: tuple[str, ...] = get_args(Kind)
FILE = "module.cu"
INSTEAD = "compile its CUDA C++ source with module.build, or load it on cuda"


class ModuleFacts(NamedTuple):
    """What is known of a loaded module.

    Attributes:
        kernels: the C++ types of each kernel's parameters; of one whose types the module does not
            tell, their sizes, as "8 bytes".
        variables: the `__constant__` and `__device__` variables, and whether each is a constant;
            None where the module does not tell.
        log: the warnings of who compiled or linked it.
        cached: whether it was found on disk rather than compiled.
    """

    kernels: dict[str, tuple[str, ...]]
    variables: dict[str, bool] | None
    log: str
    cached: bool


class Build(Operation[Handle[LoadedModule]], frozen=True, array_like=True, eq=False, tag=588):
    """Compile the kernels `names` of CUDA C++ `source` as one module, with its variables."""

    library: ClassVar[str] = "module"
    dtypes: ClassVar = frozenset({""})
    source: str
    names: tuple[str, ...]
    options: tuple[str, ...] = ()
    headers: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it

    def infer(self) -> None:
        """Refuse what no compiler takes."""
        if not self.names:
            raise InvalidArgument(
                "Build: names has no kernel, and the source no __global__ function that is "
                'no template; name those that you want, as names=("scale<float>",)'
            )
        require_source("Build", self.source, self.headers, self.options)
        require_names("Build", self.names, (self.source, *self.headers.values()))
        if len(set(self.names)) < len(self.names):
            raise InvalidArgument(f"Build: names has a kernel twice: {self.names}")

    @property
    def name(self) -> str:
        """What people call it."""
        return f"the module of {', '.join(self.names)}"

    @property
    def base(self) -> str:
        """The first kernel's name without namespaces and template arguments."""
        return base_of(self.names[0])

    @property
    def file(self) -> str:
        """What the source is called in the compiler's messages."""
        return FILE

    @property
    def text(self) -> str:
        """The source as compilers take it."""
        return as_compiled(self.source)

    @property
    def included(self) -> dict[str, str]:
        """The headers, likewise."""
        return {name: as_compiled(text) for name, text in self.headers.items()}


class Load(Operation[Handle[LoadedModule]], frozen=True, array_like=True, eq=False, tag=589):
    """Load a module from `images`, each the bytes of one file; several are linked.

    `kinds` says of each whether it is a cubin, PTX, LTO-IR or a fatbin.
    """

    library: ClassVar[str] = "module"
    dtypes: ClassVar = frozenset({"uint8"})
    lacking: ClassVar[str] = INSTEAD
    images: tuple[AccelRef, ...]
    kinds: tuple[str, ...]

    def infer(self) -> None:
        """Refuse what is not the bytes of files."""
        if not self.images or len(self.images) != len(self.kinds):
            text = f"Load: {len(self.images)} images have {len(self.kinds)} kinds"
            raise InvalidArgument(f"{text}; give at least one image, and a kind for each")
        for kind in self.kinds:
            if kind not in KINDS:
                raise InvalidArgument(f"Load: a kind is one of {KINDS}, not {kind!r}")
        for image in self.images:
            if image.dtype != "uint8" or image.ndim != 1 or not image.size:
                text = f"Load: an image is a vector of uint8, and {named(self, image)}"
                raise InvalidArgument(text)


class Binary(Operation[bytes], frozen=True, array_like=True, eq=False, tag=590):
    """Compile CUDA C++ `source`, and return the bytes of a cubin, of PTX or of LTO-IR.

    With `linkable` it may refer to what other files define; LTO-IR always may.
    """

    library: ClassVar[str] = "module"
    dtypes: ClassVar = frozenset({""})
    lacking: ClassVar[str] = "the host has no binaries of CUDA; make it on cuda"
    names: ClassVar[tuple[str, ...]] = ()
    source: str
    form: str = "cubin"
    linkable: bool = False
    options: tuple[str, ...] = ()
    headers: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it

    def infer(self) -> None:
        """Refuse what no compiler takes."""
        require_source("Binary", self.source, self.headers, self.options)
        if self.form not in FORMS:
            raise InvalidArgument(f"Binary: form is one of {FORMS}, not {self.form!r}")

    @property
    def name(self) -> str:
        """What people call it."""
        return f"the {self.form}"

    @property
    def base(self) -> str:
        """The same: it has no kernel that comes first."""
        return self.name

    @property
    def file(self) -> str:
        """What the source is called in the compiler's messages."""
        return FILE

    @property
    def text(self) -> str:
        """The source as compilers take it."""
        return as_compiled(self.source)

    @property
    def included(self) -> dict[str, str]:
        """The headers, likewise."""
        return {name: as_compiled(text) for name, text in self.headers.items()}
