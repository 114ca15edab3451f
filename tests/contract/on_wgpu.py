"""Which tests of the contract run on wgpu, too.

A processor's adapter takes 0.1 s for each kernel that is new to it, so by default those run that
say most. With ACCEL_LAB_WGPU=all all run; what asks there for what wgpu refuses by name is skipped.
With ACCEL_LAB_WGPU=host all run with the host's help, and little is refused.
"""

import os
from collections.abc import Mapping
from typing import Any, Literal

from accel_lab.backends.wgpu.support import SUPPORT
from accel_lab.errors import InvalidArgument, UnsupportedDtype
from tests.contract.declared import DECLARED

CHOSEN: dict[str, frozenset[str]] = {
    "test_ping.py": frozenset(),
    "test_transfer.py": frozenset(
        {
            "test_an_array_comes_back_as_it_went",
            "test_the_way_through_the_arena_gives_the_same_bytes",
            "test_a_large_array_without_order_is_staged_in_chunks",
            "test_a_view_is_downloaded_in_c_order",
            "test_put_has_copied_when_it_returns",
            "test_what_a_function_raises_is_the_cause",
        }
    ),
    "test_array.py": frozenset(
        {
            "test_zeros_is_zeros",
            "test_full_holds_its_value",
            "test_full_holds_the_extreme_integers_exactly",
            "test_full_rounds_a_float_as_its_dtype_does",
            "test_a_copy_is_equal_and_apart",
            "test_a_slice_may_end_far_outside",
            "test_a_reshape_has_the_same_elements_in_c_order",
            "test_views_of_views_are_views_of_the_first",
            "test_a_view_and_its_base_are_one_memory",
            "test_a_reshape_that_strides_do_not_allow_is_a_copy",
            "test_writes_and_reads_happen_in_the_order_sent",
        }
    ),
    "test_blas.py": frozenset(
        {
            "test_gemm_is_the_sum_of_products",
            "test_gemm_agrees_with_scipy",
            "test_gemm_adds_beta_c_within_rounding",
            "test_gemv_agrees_with_scipy",
            "test_without_inner_extent_only_beta_c_is_left",
            "test_narrow_floats_are_rounded_once",
        }
    ),
    "test_declared.py": frozenset(
        {
            "test_an_operand_is_not_read_where_its_factor_is_zero",
            "test_an_operand_without_the_dots_serves_all",
            "test_out_may_be_a_part_and_the_rest_stays",
        }
    ),
    "test_fft.py": frozenset(
        {
            "test_c2c_is_the_definition",
            "test_without_axes_they_are_the_last_or_all",
            "test_empty_arrays_are_treated_as_scipy_does",
            "test_a_mistake_is_refused_with_what_and_what_was_expected",
        }
    ),
    "test_fft_layouts.py": frozenset(
        {
            "test_a_batch_is_transformed_within_its_vector_and_the_gaps_stay",
            "test_shifts_are_scipys_bit_for_bit",
            "test_frequencies_are_scipys",
        }
    ),
    "test_indexing.py": frozenset({"test_taking_along_an_axis_is_numpys"}),
    "test_rng.py": frozenset(
        {
            "test_uniform_numbers_are_curand_s",
            "test_normal_numbers_are_box_and_muller_s",
            "test_an_odd_last_normal_number_takes_a_pair",
            "test_normal_numbers_are_scaled_in_two_rounded_steps",
            "test_narrow_normal_numbers_are_rounded",
        }
    ),
}
"""By file; without a name it is the whole file."""
_LACKING = "complex", "float8"


def runs_on_wgpu(file: str, test: str) -> bool:
    """Whether a test of the contract is one of those."""
    if os.environ.get("ACCEL_LAB_WGPU") in ("all", "host"):
        return True
    chosen = CHOSEN.get(file)
    return chosen is not None and (not chosen or test in chosen)


def helped(backend: str) -> Literal["host"] | None:
    """Return what helps a backend out."""
    is_asked = backend == "wgpu" and os.environ.get("ACCEL_LAB_WGPU") == "host"
    return "host" if is_asked else None


def may_be_refused(file: str, test: str) -> bool:
    """Whether wgpu may refuse what a test asks for: of what was chosen it has all."""
    chosen = CHOSEN.get(file)
    return chosen is None or (bool(chosen) and test not in chosen)


def is_refusal(error: BaseException | None) -> bool:
    """Whether wgpu has refused a dtype, a message, or a kernel in another language."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_refusal, error.exceptions))
    while error is not None:
        if isinstance(error, UnsupportedDtype):
            return True
        if isinstance(error, InvalidArgument) and "this backend compiles wgsl, not" in str(error):
            return True
        # Where another error was expected, that is what was found instead.
        error = error.__context__ if isinstance(error, AssertionError) else error.__cause__
    return False


def is_refused(file: str, parameters: Mapping[str, Any]) -> bool:
    """Whether a test is of a message or a dtype that wgpu's table lacks; `fft` has complex ones."""
    if parameters.get("backend") != "wgpu" or helped("wgpu"):
        return False
    declared = DECLARED.get(str(parameters.get("name")))
    if declared is not None and not SUPPORT[declared.row]:
        return True
    if file.startswith("test_fft"):
        return False
    return any(str(value).startswith(_LACKING) for value in parameters.values())
