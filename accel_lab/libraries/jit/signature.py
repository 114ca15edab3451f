"""The parameters of a compiled kernel, as its compiler knows them.

`reflection` is C++ that is compiled behind the user's source, by any compiler of C++17. It deduces
the parameter types from the kernel itself and stores a row of numbers for each in a table of the
binary, `accel_lab_signature`. `parameters_of` reads those numbers.
"""

import struct
from typing import NamedTuple

TABLE = "accel_lab_signature"
"""The symbol of the table, for 32-bit words: MAGIC, the number of parameters, then the rows.

It is that of a program's first kernel; `table_of` has the others'.
"""

MAGIC = 0xACCE1AB1
PREFIX = "accel_lab_"
_WORDS = struct.Struct("=7I")
_HEAD = struct.Struct("=2I")

CODES = (
    "",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "char",
    "void",
    "pointer",
)
"""What a code says of a type: its dtype's name, or what it is; 0 for a type of the user's own."""

_SPELLINGS = {
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float8_e4m3fn": "__nv_fp8_e4m3",
    "float8_e5m2": "__nv_fp8_e5m2",
    "bfloat16": "__nv_bfloat16",
    "float16": "__half",
    "float32": "float",
    "float64": "double",
}

# Every name of ours begins with $, for accel_lab_, so that no macro of the source can change it.
_SOURCE = """
typedef decltype(&{kernel}) $kernel_type;
struct __half;
struct __nv_bfloat16;
struct __nv_fp8_e4m3;
struct __nv_fp8_e5m2;
namespace $signature_of {{
typedef unsigned int $word;
template <$word $N> struct $Is {{ static constexpr $word $value = $N; }};
template <class $T, bool $E> struct $Named : $Is<0> {{}};
template <class $T> struct $Code : $Named<$T, __is_enum($T)> {{}};
template <class $T> struct $Named<$T, true> : $Code<__underlying_type($T)> {{}};
template <> struct $Code<bool> : $Is<1> {{}};
template <> struct $Code<signed char> : $Is<2> {{}};
template <> struct $Code<short> : $Is<3> {{}};
template <> struct $Code<int> : $Is<4> {{}};
template <> struct $Code<long> : $Is<5> {{}};
template <> struct $Code<long long> : $Is<5> {{}};
template <> struct $Code<unsigned char> : $Is<6> {{}};
template <> struct $Code<unsigned short> : $Is<7> {{}};
template <> struct $Code<unsigned int> : $Is<8> {{}};
template <> struct $Code<unsigned long> : $Is<9> {{}};
template <> struct $Code<unsigned long long> : $Is<9> {{}};
template <> struct $Code<__nv_fp8_e4m3> : $Is<10> {{}};
template <> struct $Code<__nv_fp8_e5m2> : $Is<11> {{}};
template <> struct $Code<__nv_bfloat16> : $Is<12> {{}};
template <> struct $Code<__half> : $Is<13> {{}};
template <> struct $Code<float> : $Is<14> {{}};
template <> struct $Code<double> : $Is<15> {{}};
template <> struct $Code<char> : $Is<16> {{}};
template <> struct $Code<void> : $Is<17> {{}};
template <class $T> struct $Code<$T*> : $Is<18> {{}};
template <class $T> struct $Code<const $T> : $Code<$T> {{}};
template <class $T> struct $Code<volatile $T> : $Code<$T> {{}};
template <class $T> struct $Code<const volatile $T> : $Code<$T> {{}};
struct $Row {{ $word $size, $align, $code, $element, $element_size, $element_align, $read_only; }};
template <$word> struct $Known {{ typedef void $type; }};
template <class $T, class = void> struct $Extent {{
  static constexpr $word $size = 0, $align = 1;
}};
template <class $T> struct $Extent<$T, typename $Known<sizeof($T)>::$type> {{
  static constexpr $word $size = sizeof($T), $align = alignof($T);
}};
template <class $T, $word> struct $Pointee : $Extent<$T> {{}};
template <class $T> struct $Pointee<$T, 17> {{ static constexpr $word $size = 0, $align = 1; }};
template <class $T> struct $Constant : $Is<0> {{}};
template <class $T> struct $Constant<const $T> : $Is<1> {{}};
template <class $T> struct $Parameter {{
  static constexpr $Row $row = {{sizeof($T), alignof($T), $Code<$T>::$value, 0, 0, 1, 0}};
}};
template <class $T> struct $Parameter<$T*> {{
  static constexpr $word $code = $Code<$T>::$value;
  static constexpr $Row $row = {{sizeof($T*), alignof($T*), 18, $code, $Pointee<$T, $code>::$size,
                              $Pointee<$T, $code>::$align, $Constant<$T>::$value}};
}};
template <class $F> struct $Of;
template <class... $A> struct $Of<void (*)($A...)> {{
  struct $Table {{ $word $magic, $count; $Row $rows[sizeof...($A) + 1]; }};
  static constexpr $Table $table = {{
      {magic}u, sizeof...($A), {{$Parameter<$A>::$row..., $Row{{}}}}}};
{more}}};
template <class... $A> struct $Of<void (*)($A...) noexcept> : $Of<void (*)($A...)> {{}};
typedef $Of<$kernel_type> $Kernel;
}}
extern "C" {storage} const $signature_of::$Kernel::$Table $signature =
    $signature_of::$Kernel::$table;
"""


class Parameter(NamedTuple):
    """One parameter of a kernel: sizes in bytes, types by their names in `CODES`.

    What is said of an element is about what a pointer points to; `read_only` means `const T*`.
    """

    size: int
    align: int
    code: str
    element: str
    element_size: int
    element_align: int
    read_only: bool

    @property
    def is_pointer(self) -> bool:
        """Whether the parameter takes a buffer."""
        return self.code == "pointer"

    @property
    def text(self) -> str:
        """The type in C++; that of a struct only by its size."""
        if not self.is_pointer:
            return _spelling(self.code, self.size)
        const = "const " if self.read_only else ""
        return f"{const}{_spelling(self.element, self.element_size)}*"


def prefix_of(number: int) -> str:
    """Return what the names begin with that belong to a program's kernel of this number."""
    return f"{PREFIX}{number}_" if number else PREFIX


def table_of(number: int) -> str:
    """Return the symbol of the table of a program's kernel of this number."""
    return f"{prefix_of(number)}signature"


def reflection(kernel: str, storage: str, more: str = "", number: int = 0) -> str:
    """Return the C++ that stores the table of a kernel.

    Parameters:
        kernel: the kernel's name, template arguments included.
        storage: what stands before the table's type, as `__device__`.
        more: members for the struct that knows the parameter types as `$A...`, written like the
            rest: `$` for the prefix, and braces doubled.
        number: which of the program's kernels it is, from 0.
    """
    source = _SOURCE.replace("{more}", more).replace("$", prefix_of(number))
    return source.format(kernel=kernel, storage=storage, magic=MAGIC)


def parameters_of(table: bytes) -> tuple[Parameter, ...]:
    """Read a table, and whatever stands behind it in memory.

    Raises:
        ValueError: it is none.
    """
    magic, count = _HEAD.unpack_from(table)
    if magic != MAGIC or len(table) < table_bytes(count):
        raise ValueError("there is no table of parameters in this binary")
    rows = _WORDS.iter_unpack(table[_HEAD.size : table_bytes(count)])
    return tuple(
        Parameter(
            size, align, CODES[code], CODES[element], element_size, element_align, bool(const)
        )
        for size, align, code, element, element_size, element_align, const in rows
    )


def table_bytes(count: int) -> int:
    """Return the size of a table for so many parameters."""
    return _HEAD.size + count * _WORDS.size


def _spelling(code: str, size: int) -> str:
    if not code:
        return f"struct of {size} bytes" if size else "struct"
    return "void*" if code == "pointer" else _SPELLINGS.get(code, code)
