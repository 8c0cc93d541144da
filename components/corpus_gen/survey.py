"""A look through a whole corpus without TensorFlow: everything that CorpusGen would refuse."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.corpus_gen import replay
from components.corpus_gen.formats import Options, read
from components.corpus_gen.images import Images
from components.corpus_gen.problems import Broken, Problems
from components.corpus_gen.sources import SPLITS, Group, resolve
from components.corpus_gen.spans import settled
from components.corpus_gen.splits import Draws, HashedSplit
from components.errors import UserError

_STEP = 4096


@dataclass
class Survey:
    """What a corpus holds: its files and its rows by split, and what is left out or repaired.

    ``spans`` are those of ``spans.settled``, each with its ``rows`` by split, and of one that is
    replayed with how many were ``available``.
    """

    files: dict[str, list[str]]
    rows: dict[str, int]
    notes: list[str]
    spans: list[dict[str, Any]]


def survey(data: Mapping[str, Any], tell: Callable[[str], None] | None = None) -> Survey:
    """Reads every row of every file once, and the beginning of every image.

    In bounded memory, but for tables with several references: of those a file is held at a time.

    Args:
        data: the ``data`` section, with absolute paths.
        tell: called now and then with what is being read.

    Raises:
        UserError: the corpus cannot be used as it is.
    """
    data = settled(data)
    given = resolve(data)
    draws = Draws(data, given)
    options = Options.of(data)
    images = Images(data)
    problems = Problems()
    counts: dict[str | None, dict[str, int]] = {}  # of each span
    # Of each group of a span that is replayed, with the span's name.
    tallies: dict[tuple[str | None, int], Counter[int]] = {}
    for group in (group for groups in given.values() for group in groups):
        own = Problems()
        if group.replay:
            found = replay.tally(group, data, draws.of(group), own)
            tallies[group.span, len(tallies)] = found
            problems.merge(own)
            continue
        draw = draws.of(group)
        rows = counts.setdefault(group.span, dict.fromkeys(draws.names, 0))
        try:
            for line, values in read(group, options, own, images):
                rows[draw(values) if draw else group.split] += 1
                if tell is not None and line % _STEP == 0:
                    tell(f"{os.path.basename(group.files[0])}: {line:,} lines")
        except Broken as broken:
            own.broken.append(broken.problem)
        problems.merge(own)
    problems.refuse(options.bad_rows_limit)
    files = {name: _files(groups) for name, groups in given.items()}
    rows = {name: sum(count[name] for count in counts.values()) for name in draws.names}
    taken = data["spans"]["taken"] if "spans" in data else []
    share = data["spans"].get("replay", 0.0) if taken else 0.0
    parts = replay.parts(tallies, rows["train"], share)
    spans = []
    for one in taken:
        if one.get("replayed"):
            own_parts = [(tallies[key], parts[key]) for key in tallies if key[0] == one["name"]]
            again = {"train": sum(part.rows(tally) for tally, part in own_parts)}
            rows["train"] += again["train"]
            available = sum(tally.total() for tally, _ in own_parts)
            spans.append({**one, "rows": again, "available": available})
        else:
            spans.append({**one, "rows": ordered(counts[one["name"]])})
    checked = checked_rows(rows, problems, draws.usual)
    notes = [*problems.notes(), *untested(data, spans), *replay.too_few(spans, checked, share)]
    return Survey(files, checked, notes, spans)


def _files(groups: Iterable[Group]) -> list[str]:
    return [path for group in groups for path in group.files]


def ordered(rows: Mapping[str, int]) -> dict[str, int]:
    """Numbers of rows in the order of the splits."""
    return {name: rows[name] for name in SPLITS if name in rows}


def untested(data: Mapping[str, Any], spans: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence where none of the newest span's rows came to be tested on, though some should."""
    if not spans or not data["spans"]["test_share"] or spans[-1]["rows"].get("test"):
        return []
    share = f"data.spans.test_share: {data['spans']['test_share']:g}"
    return [f"span {spans[-1]['name']} is too small: {share} takes none of its rows for test"]


def checked_rows(
    rows: Mapping[str, int], problems: Problems, split: HashedSplit | None
) -> dict[str, int]:
    """The number of rows of each split, in the order train, eval, test.

    Raises:
        UserError: a split has none.
    """
    rows = ordered(rows)
    empty = [name for name, count in rows.items() if not count]
    if not empty:
        return rows
    skipped = problems.left_out
    told = f" ({skipped:,} rows were skipped)" if skipped else ""
    if split and any(name in split.names for name in empty):
        raise UserError(
            f"{sum(rows.values()):,} rows are too few to split: nothing is left for "
            f"{' and '.join(empty)}{told}",
            where="data.split",
            remedy="Give more rows, larger shares, another seed, or files for `eval` and `test`.",
        )
    raise UserError(
        f"no row is left for {' and '.join(empty)}{told}",
        where=f"data.{empty[0]}",
        remedy="Check `data.columns`, `data.bad_rows` and `data.encoding_errors`.",
    )
