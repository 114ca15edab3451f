"""Classes that refuse to be copied and pickled, because each instance owns something.

Python copies and pickles whatever has no say in it. The copy of a system, once collected, would
close the original; that of a reply would wait for ever; and the pickle of a handle, which holds
nothing of the array, is the same for two arrays, which caches take for one.
"""

from typing import Any, ClassVar, NoReturn, Self, SupportsIndex


class Uncopied:
    """Refuses `copy.copy`, `copy.deepcopy` and `pickle`, and says what to do instead.

    What has a `__copy__` and a `__deepcopy__` of its own is copied as these say.
    """

    __slots__ = ()

    _instead: ClassVar[str] = "open another where you need one"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse; `copy` and `pickle` ask for this.

        Raises:
            TypeError: always, as for a lock or an open file.
        """
        kind = type(self).__name__
        article = "an" if kind[0] in "AEIOU" else "a"
        raise TypeError(f"{article} {kind} is not copied or pickled: {self._instead}")


class Address(Uncopied):
    """Names something that others own: a copy is the same address, and a pickle is refused.

    So a copy of an object of the user's that holds one is made, and uses the same device.
    """

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self
