"""The quickstart's data: dates, times, numbers and amounts written out, and their plain form.

Text normalisation is a real task with right answers and known alignments, learned in minutes.
Everything comes from a seed, so a data set can be made again byte for byte.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import random
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from components.errors import UserError
from pipeline.datasets.locales import STYLES, Style
from pipeline.datasets.summary import Progress, Summary, write
from pipeline.datasets.written import (
    Written,
    join,
    write_amount,
    write_date,
    write_number,
    write_time,
    write_words,
)

NAME = "quickstart"
SHARES = {
    "date": 0.30,
    "datetime": 0.18,
    "amount": 0.17,
    "number": 0.13,
    "time": 0.12,
    "spelled": 0.10,
}
FIRST, LAST = dt.date(1950, 1, 1), dt.date(2049, 12, 31)
# Tries for each row: the texts of a kind run out long before chance alone misses this often.
TRIES = 200


@dataclass(frozen=True)
class Row:
    """One pair, with where it comes from."""

    kind: str
    locale: str
    written: Written


def generate(
    directory: str | Path, rows: int = 20_000, seed: int = 17, progress: Progress | None = None
) -> Summary:
    """Writes ``train``, ``eval`` and ``test`` as gzipped TSV: the written text, its plain
    form, the kind, the locale, and what comes from where, in characters.

    No source is in two splits or has two targets. Beside them lie ``quickstart.json`` (counts,
    seed, versions) and ``test.alignments.jsonl.gz`` (what comes from where, in characters).

    Args:
        directory: made if absent; files of an earlier call are replaced.
        rows: pairs of all splits together; a twentieth goes to each of eval and test.
        seed: the same seed and library versions give the same bytes.
        progress: told the share done.

    Raises:
        UserError: more rows than there are texts, or the directory cannot be written.
    """
    if rows < 20:
        raise UserError(f"{rows} rows are too few", remedy="Ask for 20 or more.")
    made = _rows(rows, random.Random(seed), progress)
    part = rows // 20
    splits = {"train": made[2 * part :], "eval": made[:part], "test": made[part : 2 * part]}
    content: dict[str, bytes | str] = {
        f"{split}.tsv.gz": _tsv(chosen) for split, chosen in splits.items()
    }
    content["test.alignments.jsonl.gz"] = _alignments(splits["test"])
    content[f"{NAME}.json"] = _provenance(made, splits, seed)
    return write(
        NAME, Path(directory), content, {split: len(chosen) for split, chosen in splits.items()}
    )


def key(source: str) -> str:
    """What a source looks like to a tokenizer that normalises: spaces, width and case aside."""
    text = unicodedata.normalize("NFKC", source)
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return " ".join(text.split()).casefold()


def _rows(count: int, rng: random.Random, progress: Progress | None) -> list[Row]:
    kinds, weights = list(SHARES), list(SHARES.values())
    spelling = [style for style in STYLES if style.words]
    seen: dict[str, str] = {}
    rows: list[Row] = []
    for _ in range(count):
        kind = rng.choices(kinds, weights)[0]
        for _ in range(TRIES):
            style = rng.choice(spelling if kind == "spelled" else STYLES)
            written = _write(kind, style, rng)
            if written is None:
                continue
            before = seen.setdefault(key(written.source), written.target)
            if before != written.target:
                raise RuntimeError(f"{written.source!r} is both {before} and {written.target}")
            if len(seen) > len(rows):
                break
        else:
            raise UserError(
                f"there are no {count:,} different rows: the texts of kind {kind!r} ran out",
                remedy=f"Ask for fewer rows ({len(rows):,} were found).",
            )
        rows.append(Row(kind, style.tag, written))
        if progress and len(rows) % 1000 == 0:
            progress(f"{len(rows):,} of {count:,} rows", len(rows) / count)
    return rows


def _write(kind: str, style: Style, rng: random.Random) -> Written | None:
    native = style.digits is not None and rng.random() < 0.5
    if kind == "date":
        return write_date(style, rng.choice(style.dates), _date(rng), native)
    if kind == "time":
        return write_time(style, rng.choice(style.times), _time(rng), native)
    if kind == "datetime":
        time = write_time(style, rng.choice(style.times), _time(rng), native)
        if time is None:
            return None
        date = write_date(style, rng.choice(style.dates), _date(rng), native)
        return join(style, rng.choice(style.joins), date, time)
    if kind == "number":
        value = _decimal(rng, places=rng.choice((0, 0, 1, 2, 2)))
        negative = value != 0 and rng.random() < 0.08
        return write_number(style, -value if negative else value, rng.random() < 0.75, native)
    if kind == "amount":
        currency = rng.choice(style.currencies)
        whole = currency == "JPY" or rng.random() < 0.25
        form = rng.choice(("symbol", "code", "name", "name"))
        return write_amount(style, _decimal(rng, 0 if whole else 2), currency, form, native)
    return write_words(style, rng.randint(0, 999 if rng.random() < 0.97 else 9999))


def _date(rng: random.Random) -> dt.date:
    return FIRST + dt.timedelta(days=rng.randrange((LAST - FIRST).days + 1))


def _time(rng: random.Random) -> dt.time:
    return dt.time(rng.randrange(24), rng.randrange(60), rng.randrange(60))


def _decimal(rng: random.Random, places: int) -> Decimal:
    """A number of one to seven whole digits (few of them long), with ``places`` decimals."""
    length = rng.choices(range(1, 8), (5, 14, 22, 26, 18, 10, 5))[0]
    whole = rng.randrange(10 ** (length - 1) if length > 1 else 0, 10**length)
    return Decimal(whole * 10**places + rng.randrange(10**places)).scaleb(-places)


def _tsv(rows: Iterable[Row]) -> bytes:
    lines = []
    for row in rows:
        written = row.written
        columns = written.source, written.target, row.kind, row.locale, _links(written)
        lines.append("\t".join(columns) + "\n")
    return _gzip("".join(lines))


def _links(written: Written) -> str:
    """What comes from where, character by character, in Pharaoh's form.

    Where a part stands in the target as in the source, each character comes from its own; of the
    others all that is known is that one comes from the other.
    """
    links = []
    for part in written.parts:
        sources, targets = range(*part.source), range(*part.target)
        same = written.source[slice(*part.source)] == written.target[slice(*part.target)]
        if same:
            links += [f"{s}-{t}" for s, t in zip(sources, targets, strict=True)]
        else:
            links += [f"{s}p{t}" for t in targets for s in sources]
    return " ".join(links)


def _alignments(rows: Iterable[Row]) -> bytes:
    lines = []
    for number, row in enumerate(rows):
        parts = [
            {"part": p.name, "source": p.source, "target": p.target} for p in row.written.parts
        ]
        record = {
            "row": number,
            "locale": row.locale,
            "kind": row.kind,
            "source": row.written.source,
            "target": row.written.target,
            "parts": parts,
        }
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return _gzip("".join(lines))


def _provenance(rows: list[Row], splits: dict[str, list[Row]], seed: int) -> str:
    from importlib.metadata import version

    counts = Counter((row.locale, row.kind) for row in rows)
    record = {
        "name": NAME,
        "seed": seed,
        "rows": {split: len(chosen) for split, chosen in splits.items()},
        "kinds": {kind: sum(row.kind == kind for row in rows) for kind in SHARES},
        "locales": {
            style.tag: {kind: n for kind in SHARES if (n := counts[style.tag, kind])}
            for style in STYLES
        },
        "versions": {name: version(name) for name in ("babel", "num2words")},
    }
    return json.dumps(record, indent=2) + "\n"


def _gzip(text: str) -> bytes:
    buffer = io.BytesIO()
    # No name and no time in the header: the same text gives the same bytes.
    with gzip.GzipFile("", "wb", 9, buffer, mtime=0) as file:
        file.write(text.encode("utf-8"))
    return buffer.getvalue()
