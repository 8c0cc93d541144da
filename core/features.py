"""The features of a raw row, and the base of their kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from regard.core.characters import is_blank
from regard.core.formatting import truncate

if TYPE_CHECKING:
    import pyarrow as pa

Role = Literal["input", "reference", "extra"]
# A text or the path of an image is a str, several texts a list of them; a number is a float;
# points are flat, such as x0 y0 x1 y1 ...; positions are a list of int; a missing optional value
# is None.
Value = str | float | list[str] | list[float] | list[int] | None

# What pyarrow calls types of texts and of numbers.
STRINGS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
NUMBERS = ("integer", "floating", "decimal")


@dataclass(frozen=True)
class Feature:
    """A feature of a raw row, as data files and tf.Examples contain it.

    Attributes:
        name: The name in tf.Examples and in ``data.columns``.
        kind: How its values are written, checked, stored, sent and shown, see ``core/kinds``.
        role: ``input`` of the model, ``reference``, or ``extra``, which only the evaluation reads.
        multiple: Whether a row may have more than one value, such as the captions of an image.
        optional: Whether the value may be missing.
        links: Whether the text is a list of word alignments in Pharaoh format.
        tags: The tags, one of which is the value and begins the first text input; empty: the value
            is no tag.
        low: The minimum of a number.
        high: The maximum of a number.
        limits_key: The key of the configuration with ``low`` and ``high``; empty without one.
        min_points: The minimum number of points.
        dimensions: The number of coordinates of a point.
        part_of: The text feature that contains the values: texts, or positions that are the begin
            and the end of each part in characters.
        begins: The text feature whose values begin at these positions, in characters; a missing one
            is filled in, and the training reads it.
    """

    name: str
    kind: Kind
    role: Role = "input"
    multiple: bool = False
    optional: bool = False
    links: bool = False
    tags: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    limits_key: str = ""
    min_points: int = 1
    dimensions: int = 2
    part_of: str | None = None
    begins: str | None = None

    @property
    def tokenized(self) -> bool:
        """Whether a tokenizer is trained for the feature."""
        return self.kind.is_text and self.role != "extra"

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "kind": self.kind.name}


class CellError(Exception):
    """A cell without a valid value of its feature; ``column`` is its index in the row."""

    column = 0


class Kind(ABC):
    """How the values of a feature are written, checked, stored, sent and shown.

    Attributes:
        name: The name in descriptions and contracts.
        is_text: Whether values are texts, which checks of texts compare.
        is_number: Whether a value is a number, so that a word in its place is the name of a column.
        selects_points: Whether a value is a selection of the points of its row.
        names_file: Whether a row names a file, whose bytes are the value.
        has_several: Whether a row may have several values.
        identifies_rows: Whether the split of a row may depend on its value.
        stored_list: The list of a tf.Example that holds the values.
        tensor: The type and the shape of a model's input; None if it cannot be one.
        has_length: Whether a second input, ``<name>_length``, holds the numbers of values.
        column_depths: The possible depths of nested lists in a column of Parquet or Arrow.
        column_values: What that column holds, for messages.
        column_types: The innermost types of that column, as pyarrow calls them.
        input_remedy: What to give a model, for messages.
    """

    name: ClassVar[str]
    is_text: ClassVar[bool] = False
    is_number: ClassVar[bool] = False
    selects_points: ClassVar[bool] = False
    names_file: ClassVar[bool] = False
    has_several: ClassVar[bool] = False
    identifies_rows: ClassVar[bool] = False
    stored_list: ClassVar[str]
    tensor: ClassVar[tuple[str, str] | None] = None
    has_length: ClassVar[bool] = False
    column_depths: ClassVar[tuple[int, ...]] = (0,)
    column_values: ClassVar[str]
    column_types: ClassVar[tuple[str, ...]]
    input_remedy: ClassVar[str] = ""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return self.name

    def is_output(self, value: Any) -> bool:
        """Return whether a model's output is of this kind; few kinds can be outputs."""
        return False

    @abstractmethod
    def looks_like(self, text: str) -> bool:
        """Return whether the text of a cell can be a value, to find a column without a name."""

    def is_missing(self, feature: Feature, cell: str) -> bool:
        """Return whether the text of a cell is no value."""
        return is_blank(cell)

    def parse(self, feature: Feature, name: str, cell: str) -> Any:
        """Return the value in the text of a cell, as JSON would hold it.

        Args:
            feature: The feature.
            name: What the file calls it, for messages.
            cell: The text of a table's cell.

        Raises:
            CellError: The text is no value.
        """
        return cell

    @abstractmethod
    def convert(self, feature: Feature, name: str, value: Any) -> Value:
        """Check a value as JSON holds it, and return it as rows do; None if it is empty.

        Raises:
            CellError: The value does not fit the feature.
        """

    def check_in_row(  # noqa: B027 - the values of most kinds do not depend on others
        self, feature: Feature, name: str, features: Sequence[Feature], values: list[Any]
    ) -> None:
        """Check the value of a feature against the others of its row, and fill in what follows.

        Args:
            feature: The feature.
            name: What the file calls it, for messages.
            features: All features of the row.
            values: Their values, which may be filled in.

        Raises:
            CellError: The value does not fit the others.
        """

    def length_unit(self, feature: Feature) -> str | None:
        """Return what the length of a value counts; None if it has no length."""
        return None

    def lengths(self, feature: Feature, values: Sequence[Any]) -> Iterable[int]:
        """Return the length of each value of a feature in a row."""
        return map(len, values)

    def format(self, feature: Feature, values: Sequence[Any]) -> str:
        """Return the values of a feature in a row as text for a person."""
        return " ".join(f"{value:.7g}" for value in values)

    def to_input(self, feature: Feature, values: list[Any]) -> Any:
        """Return the stored values of a feature as a model or a metric takes them.

        None if an optional value is missing.
        """
        return values[0] if values else None

    def from_cell(self, feature: Feature, value: Any) -> Any:
        """Return the value of ``convert`` as a model takes it."""
        return value

    def to_argument(self, value: Any) -> str:
        """Return a model's input as a user would type it."""
        return str(value)

    def summarize(self, value: Any) -> str:
        """Return a model's input in a few characters, for a log."""
        return repr(truncate(value))

    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """Return the type of a value in the table of predictions."""
