"""Images: encoded JPEG, PNG or BMP bytes; rows name their files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.core.features import STRINGS, CellError, Feature, Kind, Value

if TYPE_CHECKING:
    import pyarrow as pa

_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif")


class ImageFile(NamedTuple):
    """An image of a row: its path and its bytes."""

    path: str
    content: bytes


class ImageKind(Kind):
    """An image."""

    name = "image"
    names_file = True
    identifies_rows = True
    tensor = ("string", "[batch]")
    stored_list = "bytes_list"
    column_values = "strings"
    column_types = STRINGS
    input_remedy = "Give the path of an image file."

    def looks_like(self, text: str) -> bool:
        return text.strip().lower().endswith(_ENDINGS)

    def convert(self, feature: Feature, name: str, value: Any) -> Value:
        if not isinstance(value, str):
            raise CellError(f"the value of {name!r} is not the path of an image")
        return value if value.strip() else None

    def format(self, feature: Feature, values: Sequence[Any]) -> str:
        return " / ".join(image.path for image in values)

    def to_input(self, feature: Feature, values: list[Any]) -> Any:
        return values[0].content

    def arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        return pa.string()  # the path
