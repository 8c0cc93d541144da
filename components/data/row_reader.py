"""The rows of a group of files in any format: ``(line, values)``."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from regard.components.data.cell_values import CellParser
from regard.components.data.formats.base import get_reader
from regard.components.data.images import Images
from regard.components.data.layouts import Layout
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import Corpus, FileGroup
from regard.components.data.split_assignment import canonical
from regard.core.features import CellError, Feature, Value
from regard.core.suggestions import suggest
from regard.models.tags import find_tag

Row = tuple[int, Sequence[Value]]
# The share of invalid rows from which the columns are probably wrong, not the rows.
_MOSTLY = 0.9


def read_rows(
    group: FileGroup, corpus: Corpus, problems: ReadProblems, images: Images | None = None
) -> Iterator[Row]:
    """Yield the rows of a group of files with their line numbers, from 1.

    Rows that cannot be used are recorded in ``problems`` and not yielded. If a feature can have
    several texts, rows of tables and parallel files with the same inputs become one row.

    Args:
        group: the files.
        corpus: its features and the section ``data``.
        problems: counts the rows, and receives what is wrong with them.
        images: checks the images that rows name; None: no checks.

    Raises:
        UnreadableFile: a file cannot be used at all, or parallel files have different lengths.
    """
    features = tuple(feature for feature in corpus.features if not (feature.tags and group.tag))
    rows = _valid_rows(group, replace(corpus, features=features), problems, images)
    if corpus.config.tags:
        rows = _check_tags(rows, group, corpus.features, problems)
    has_several = any(feature.multiple for feature in corpus.features)
    if has_several and get_reader(group.format).holds_text:
        return join_references(rows, corpus.features)
    return rows


def _valid_rows(
    group: FileGroup, corpus: Corpus, problems: ReadProblems, images: Images | None
) -> Iterator[Row]:
    features, columns = corpus.features, corpus.config.columns or {}
    data_format = get_reader(group.format)
    if data_format.holds_text:
        parse = CellParser(features, images, from_text=True)
    else:
        names = [str(columns.get(feature.name, feature.name)) for feature in features]
        parse = CellParser(features, images, names)
    before = problems.rows, problems.skipped_rows, len(problems.layouts)
    layout: Layout | None = None
    valid = 0
    for line, cells in data_format.read(group, corpus, problems):
        problems.rows += 1
        if cells is None:
            problems.skipped_rows += 1
            continue
        try:
            values = parse(cells)
        except CellError as error:
            problems.skipped_rows += 1
            name = features[error.column].name
            path = group.files[group.sides.index(name) if group.sides else 0]
            problems.add(path, line, str(error))
        else:
            if layout is None:
                if len(problems.layouts) == before[2]:
                    problems.layouts.append(_default_layout(group, corpus))
                layout = problems.layouts[-1]
            valid += 1
            if layout.needs_rows:
                layout.observe(features, line, values)
            yield line, values
    if layout is not None:
        layout.rows = valid
    rows, skipped = problems.rows - before[0], problems.skipped_rows - before[1]
    if skipped >= _MOSTLY * max(rows, 3):
        remedy = data_format.remedy(group, corpus)
        for example in problems.examples[:1]:
            example.remedy = example.remedy or remedy


def _default_layout(group: FileGroup, corpus: Corpus) -> Layout:
    """Return where features are read from in files without columns: a file, a language, a key."""
    columns = corpus.config.columns or {}
    features = [feature.name for feature in corpus.features]
    names = {feature: str(columns.get(feature, feature)) for feature in features}
    if group.sides:
        names = dict(zip(group.sides, map(os.path.basename, group.files), strict=True))
    return Layout(group.files[0], names, has_names=not group.sides)


def _check_tags(
    rows: Iterable[Row], group: FileGroup, features: Sequence[Feature], problems: ReadProblems
) -> Iterator[Row]:
    """Add the tag of files; skip rows with an unknown tag, or a text that contains a tag."""
    column = next(i for i, feature in enumerate(features) if feature.tags)
    tags, texts = features[column].tags, [i for i, f in enumerate(features) if f.tokenized]
    for line, untagged in rows:
        values = [*untagged, group.tag] if group.tag else untagged
        tag = find_tag(" ".join(str(values[i]) for i in texts), tags)
        problem = f"a text contains <{tag}>, which is a tag of data.tags" if tag else ""
        if values[column] not in tags:
            value = str(values[column] or "")
            problem = f"{value!r} is no tag of data.tags. {suggest(value, tags)}"
        if not problem:
            yield line, values
            continue
        problems.skipped_rows += 1
        problems.add(group.files[0], line, problem)


def join_references(rows: Iterable[Row], features: Sequence[Feature]) -> Iterator[Row]:
    """Merge rows with the same inputs and tag; of features that allow it, keep all values.

    A merged row has the line and all other values of its first row. All rows of a file are held in
    memory: its last row may belong to its first.
    """
    keys = [i for i, f in enumerate(features) if f.tags or (f.role == "input" and not f.multiple)]
    several = [i for i, f in enumerate(features) if f.multiple]
    merged: dict[tuple[str | None, ...], tuple[int, list[Any]]] = {}
    for line, values in rows:
        key = tuple(canonical(values[i]) for i in keys)
        if key not in merged:
            merged[key] = line, list(values)
            continue
        first = merged[key][1]
        for i in several:
            if values[i] is not None:
                first[i] = [*(first[i] or ()), *values[i]]  # type: ignore[misc]
    yield from merged.values()
