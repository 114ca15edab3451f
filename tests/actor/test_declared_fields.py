"""What an error's class may declare, and what it is refused for."""

from types import new_class
from typing import Any, ClassVar

import pytest

from accel_lab.errors import AccelError, ContextLost, LibraryError


class SingularMatrix(LibraryError, fields=("pivot", "matrix")):
    """An error that a library brings."""

    pivot: int
    matrix: int = 0


def declare(bases: tuple[type, ...] = (AccelError,), fields: Any = (), **body: Any) -> Any:
    return new_class("Odd", bases, {"fields": fields}, lambda names: names.update(body))


def stores(self: Any, pivot: int, scale: float) -> None:
    self.pivot, self.scale = pivot, scale


@pytest.mark.parametrize(
    ("declaration", "said"),
    [
        ({"__annotations__": {"pivot": int}}, r"Odd\.pivot would not .* fields=\('pivot',\)"),
        (
            {"fields": ("rank",), "__annotations__": {"rank": int, "pivot": "int"}},
            r"Odd\.pivot would not .* fields=\('rank', 'pivot'\)",
        ),
        ({"fields": ("pivot",), "__init__": stores}, r"Odd\.scale would not travel"),
        ({"__slots__": ("pivot",)}, r"Odd\.pivot would not travel"),
        ({"fields": "pivot"}, r"write fields=\('pivot',\)"),
        ({"fields": ("copy",)}, "'copy' cannot be a field: AccelError has it"),
        ({"fields": ("args",)}, "'args' cannot be a field"),
        ({"fields": ("_pivot",)}, "'_pivot' cannot be a field"),
        ({"fields": ("not it",)}, "'not it' cannot be a field"),
        ({"bases": (AccelError, OSError), "fields": ("errno",)}, "OSError has it"),
        ({"fields": ("lost",), "lost": {}}, r"Odd\.lost is a dict, which all errors would share"),
        ({"fields": ("lost",), "lost": property(len)}, r"Odd\.lost is a property"),
        ({"bases": (SingularMatrix,), "pivot": property(len)}, r"Odd\.pivot is a property"),
    ],
)
def test_a_class_whose_attributes_would_not_travel_is_refused(
    declaration: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        declare(**declaration)


def test_what_a_class_has_for_itself_is_no_field() -> None:
    kind = declare(
        fields=("pivot",),
        __annotations__={"pivot": int, "codes": ClassVar[int], "names": "ClassVar[str]"},
        codes=3,
    )
    assert kind.fields == ("remedy", "pivot")


def test_fields_are_taken_from_all_bases() -> None:
    kind = declare((SingularMatrix, ContextLost), ("more",))
    assert set(kind.fields) == {*SingularMatrix.fields, *ContextLost.fields, "more"}


def test_a_constructor_names_what_is_wrong_with_it() -> None:
    make: Any = SingularMatrix
    with pytest.raises(TypeError, match="SingularMatrix has no field 'pivott'; it has remedy, lib"):
        make("no", pivott=3)
    with pytest.raises(TypeError, match="SingularMatrix needs pivot=…"):
        make("no")
