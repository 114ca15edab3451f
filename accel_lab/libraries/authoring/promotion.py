"""Which dtype a result has: NumPy's answer to the same call, asked once of one element.

So Python's numbers are weak (NEP 50), narrow floats promote as ml_dtypes has it, and what NumPy
refuses is refused.
"""

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from accel_lab.compute.arrays.dtypes import canonical, is_complex, is_float, numpy_dtype
from accel_lab.compute.message.operation import Operation
from accel_lab.errors import InvalidArgument
from accel_lab.libraries.authoring.operand import Number, kind

Promoted: TypeAlias = str | Number
"""The dtype of a buffer, or a number."""


def weak(number: Number, dtype: str) -> Number:
    """Return what decides, beside a buffer of this dtype, which dtype a number leads to.

    That is its kind alone, but for an integer beside integers, which has to fit.
    """
    if type(number) is int and not (is_float(dtype) or is_complex(dtype)):
        return number
    return type(number)(1)


def promote(message: Operation[Any], function: str, *operands: Promoted) -> str:
    """Return the dtype of `numpy.function` of operands of these dtypes.

    Raises:
        InvalidArgument: NumPy has no such function of them, or it results in another dtype than
            buffers have.
    """
    try:
        return _called(function, *operands)
    except InvalidArgument:
        raise
    except TypeError:
        texts = " and ".join(_text(operand) for operand in operands)
        raise InvalidArgument(
            f"{kind(message)}: there is no {function} of {texts}; convert with array.cast"
        ) from None
    except (OverflowError, ValueError) as error:
        raise InvalidArgument(f"{kind(message)}: {function}: {error}") from None


@lru_cache(maxsize=256)
def reduced(op: str, dtype: str, asked: str) -> str:
    """Return the dtype of a reduction of an array of `dtype`, where it may ask for another.

    Raises:
        TypeError: NumPy does not reduce it so.
    """
    options = {"dtype": numpy_dtype(asked)} if asked else {}
    # With an axis left: of nothing but a number NumPy takes a root that it refuses of arrays.
    sample = np.ones((1, 1), numpy_dtype(dtype))
    return canonical(getattr(np, op)(sample, axis=0, **options).dtype)


@lru_cache(maxsize=4096, typed=True)  # True, 1 and 1.0 are three things
def _called(function: str, *operands: Promoted) -> str:
    samples = [np.ones(1, numpy_dtype(o)) if isinstance(o, str) else o for o in operands]
    with np.errstate(all="ignore"):
        return canonical(getattr(np, function)(*samples).dtype)


def _text(operand: Promoted) -> str:
    return operand if isinstance(operand, str) else f"Python's {type(operand).__name__}"
