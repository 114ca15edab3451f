"""Parameters by their C++ types, and kernels by a source's text."""

import pytest

from accel_lab.errors import InvalidArgument
from accel_lab.libraries.module.found_kernels import kernels_in
from accel_lab.libraries.module.parameter_types import Place, parameters_of, signature_in


@pytest.mark.parametrize(
    ("text", "nbytes", "told", "read_only"),
    [
        ("float", 4, "float", False),
        ("unsigned long long n", 8, "unsigned long long", False),
        ("long unsigned n", 8, "unsigned long long", False),
        ("std::size_t", 8, "unsigned long long", False),
        ("const __half value", 2, "__half", False),
        ("float* y", 8, "float*", False),
        ("const float *__restrict__ x", 8, "const float*", True),
        ("float const* x", 8, "const float*", True),
        ("float* const x", 8, "float*", False),
        ("float** x", 8, "void**", False),
        ("const void*", 8, "const void*", True),
        ("Point p", 12, "struct of 12 bytes", False),
        ("const map<int, float>* m", 8, "const struct*", True),
    ],
)
def test_a_type_is_what_cpp_says(text: str, nbytes: int, told: str, read_only: bool) -> None:  # noqa: FBT001
    (found,) = parameters_of("f", text, [Place(0, nbytes)])
    assert (found.text, found.size, found.read_only) == (told, nbytes, read_only)


@pytest.mark.parametrize(
    ("text", "sizes", "said"),
    [
        ("float, int", (8, 4), "parameter 0 is 'float', 4 bytes, and that of the module has 8"),
        ("float*", (8, 4), r"f has 2 parameters \(of 8 and 4 bytes\), and 'float\*' lists 1"),
        ("float&", (8,), "parameter 0 is 'float&'; write a pointer as T"),
        ("void x", (4,), "'void x', which is no type of one"),
    ],
)
def test_types_that_do_not_fit_the_binary_are_refused(
    text: str, sizes: tuple[int, ...], said: str
) -> None:
    with pytest.raises(InvalidArgument, match=said):
        parameters_of("f", text, [Place(8 * i, size) for i, size in enumerate(sizes)])


@pytest.mark.parametrize(
    ("readable", "found"),
    [
        ("scale(float*, int)", ("scale", "float*, int")),
        ("void a::fill<float, 4>(float*)", ("a::fill<float, 4>", "float*")),
        ("(anonymous namespace)::f(int)", ("(anonymous namespace)::f", "int")),
        ("void f<std::pair<int, int> >()", ("f<std::pair<int, int> >", "")),
        ("scale", None),
    ],
)
def test_a_demangled_symbol_is_taken_apart(readable: str, found: tuple[str, str] | None) -> None:
    assert signature_in(readable) == found


def test_kernels_are_found_with_their_namespaces_and_without_templates() -> None:
    source = """
    // __global__ void no(int* x) {}
    __global__ void declared(int* x);
    template <class T> __global__ void t(T* x) { if (x) { *x = 1; } }
    namespace a::b { namespace { int g() { return '{'; } }
      __global__ void __launch_bounds__(128, 2) in(float* x) { { *x = "}"[0]; } }
    }
    extern "C" { __global__ void c() {} }
    static __global__ void declared(int* x) { *x = 0; }
    """
    assert kernels_in(source) == ("declared", "a::b::in", "c")
