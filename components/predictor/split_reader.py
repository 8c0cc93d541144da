"""Reads the rows of a split of an Examples artifact for a model."""

import itertools
from collections.abc import Sequence

from regard.components.common.artifact_files import split_shards
from regard.components.common.prediction_table import Row
from regard.components.data.example_rows import ExampleRow, read_rows
from regard.core.features import Feature
from regard.core.kinds import IMAGE
from regard.models.tags import add_tag


def to_row(example: ExampleRow, features: Sequence[Feature]) -> Row:
    """Return a row as the model takes it, with the tag in its text.

    Args:
        example: the values of the features.
        features: the task's features.
    """
    pairs = list(zip(features, example.values, strict=True))
    values = {feature.name: feature.kind.to_input(feature, listed) for feature, listed in pairs}
    for tag in (feature.name for feature in features if feature.tags):
        source = next(f.name for f in features if f.role == "input" and f.kind.is_text)
        values[source] = add_tag(values[tag], values[source])
    (reference,) = (feature for feature in features if feature.role == "reference")
    references = values[reference.name]
    if not reference.multiple:
        references = [] if references is None else [references]
    return Row(
        inputs={f.name: values[f.name] for f in features if f.role == "input"},
        references=references,
        extras={f.name: values[f.name] for f in features if f.role == "extra"},
        paths={f.name: listed[0].path for f, listed in pairs if f.kind.names_file},
        file=example.file,
        line=example.line,
    )


def row_length(row: Row) -> int:
    """Estimate the work of a row by its characters and points; images all have the same size."""
    return sum(len(value) for value in row.inputs.values() if not isinstance(value, bytes))


def read_images(
    split: str, names: Sequence[str], rows: Sequence[int]
) -> dict[int, dict[str, bytes]]:
    """Return the images of some rows, by row number and feature.

    Args:
        split: the split's folder.
        names: the image features.
        rows: row numbers of the Predictor's table.
    """
    paths, features = split_shards(split), [Feature(name, IMAGE) for name in names]
    order = corpus_order([(row.file, row.line) for path in paths for row in read_rows(path, [])])
    row_of = {order[row]: row for row in rows}
    examples = itertools.chain.from_iterable(read_rows(path, features) for path in paths)
    return {
        row_of[index]: {name: image.content for name, (image,) in zip(names, values, strict=True)}
        for index, (values, _, _) in enumerate(examples)
        if index in row_of
    }


def corpus_order(positions: Sequence[tuple[str, int]]) -> list[int]:
    """Return the indices of records in the order of the corpus.

    Beam writes a split in any order. Sorting by file and line aligns the outputs with the user's
    test file.

    Args:
        positions: the file and the line of each record.
    """
    return sorted(range(len(positions)), key=positions.__getitem__)
