"""The dtype of a handle: its name, which answers as NumPy's dtype object does."""

from typing import Any, cast

from accel_lab.compute.arrays.dtypes import NAMES, numpy_dtype

_KNOWN = frozenset(NAMES)
_same = str.__eq__


class NamedDType(str):
    """The name of a dtype, as "float32", that is equal to whatever NumPy's dtype is equal to.

    So `x.dtype == np.float32`, `x.dtype in (np.float32, float)` and `x.dtype == "f4"` are what they
    are of an array, and `x.dtype.kind`, `.itemsize`, `.type` and the like are there. It is a text
    for all else, so a key of a dictionary is the name; `np.dtype(x.dtype)` is NumPy's object.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        if isinstance(other, str) and other in _KNOWN:  # hot: nearly all ask for a name
            return _same(self, other)
        # For NumPy None is float64: nobody who asks whether there is a dtype means that.
        return other is not None and numpy_dtype(self) == other

    def __ne__(self, other: object) -> Any:
        equal = self == other
        return not equal if isinstance(equal, bool) else numpy_dtype(self) != other

    # A set or a dictionary finds it by its name. NumPy's object has a hash that no name has.
    __hash__ = str.__hash__

    def __getattr__(self, name: str) -> Any:
        """Return what NumPy's dtype object has and a text has not."""
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(numpy_dtype(self), name)

    def __reduce__(self) -> Any:
        return named, (str(self),)


NAMED: dict[str, NamedDType] = {name: NamedDType(name) for name in NAMES}
"""The one object for each name."""


def named(name: str) -> NamedDType:
    """Return the one object for a name; what is no dtype, as `kernel`, is returned as it is."""
    if type(name) is NamedDType:
        return name
    found = NAMED.get(name)
    return cast("NamedDType", name) if found is None else found


def plain_name(value: object) -> str:
    """Return a name as the text that can travel; what an encoder calls for what it cannot send.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(value, NamedDType):
        return str(value)
    raise TypeError(f"a {type(value).__name__} cannot travel")
