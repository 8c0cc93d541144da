"""The data of the quickstart: dates, times, numbers and amounts in words, with their normal form.

Text normalisation is a real task with exact targets and known alignments that a model learns in
minutes. A seed determines every byte.
"""

import datetime as dt
import itertools
import random
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

from regard.core.errors import UserError
from regard.pipeline.datasets import locale_text
from regard.pipeline.datasets.dataset_files import Progress, split_rows, write_dataset
from regard.pipeline.datasets.locale_formats import LOCALES, LocaleFormats

FRACTIONS = {
    "date": 0.30,
    "datetime": 0.18,
    "amount": 0.17,
    "number": 0.13,
    "time": 0.12,
    "spelled": 0.10,
}
FIRST_DATE, LAST_DATE = dt.date(1950, 1, 1), dt.date(2049, 12, 31)
# Attempts for each row; this many fail only if all texts of a kind are used up.
MAX_ATTEMPTS = 200


@dataclass(frozen=True)
class SamplePair:
    """One pair, with its kind and locale."""

    kind: str
    locale: str
    text: locale_text.AlignedText


def generate(
    directory: str | Path, rows: int = 20_000, seed: int = 17, progress: Progress | None = None
) -> dict[str, int]:
    """Write ``train``, ``eval`` and ``test`` as gzipped TSV.

    Columns: source, target, kind, locale, and the character alignment. No source is in two splits
    or has two targets. ``quickstart.json`` contains counts, seed and library versions.

    Args:
        directory: created if missing; existing files are replaced.
        rows: the pairs of all splits; eval and test get a twentieth each.
        seed: equal seeds and library versions give equal bytes.
        progress: receives the fraction that is done.

    Raises:
        UserError: there are fewer texts than rows.
    """
    counts = split_rows(rows, {"eval": 0.05, "test": 0.05})
    generated = sample_rows(rows, random.Random(seed))
    first, second = counts["eval"], counts["eval"] + counts["test"]
    splits = {
        "train": generated[second:],
        "eval": generated[:first],
        "test": generated[first:second],
    }
    return write_dataset(
        "quickstart",
        Path(directory),
        seed,
        counts,
        {f"{name}.tsv.gz": map(_tab_separated, part) for name, part in splits.items()},
        progress,
        versions={name: version(name) for name in ("babel", "num2words")},
    )


def normalize(source: str) -> str:
    """Return a source as a normalising tokenizer reads it: without case, width and extra spaces."""
    text = unicodedata.normalize("NFKC", source)
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return " ".join(text.split()).casefold()


def sample_rows(count: int, rng: random.Random) -> list[SamplePair]:
    """Return random rows with different sources."""
    kinds = list(FRACTIONS)
    weights = list(FRACTIONS.values())
    with_words = [formats for formats in LOCALES if formats.words]
    targets: dict[str, str] = {}
    rows: list[SamplePair] = []
    for _ in range(count):
        kind = rng.choices(kinds, weights)[0]
        for _ in range(MAX_ATTEMPTS):
            formats = rng.choice(with_words if kind == "spelled" else LOCALES)
            text = _write(kind, formats, rng)
            if text is None:
                continue
            target = targets.setdefault(normalize(text.source), text.target)
            if target != text.target:
                raise RuntimeError(f"{text.source!r} is both {target} and {text.target}")
            if len(targets) > len(rows):
                break
        else:
            message = f"There are not enough different texts of kind {kind!r} for {count:,} rows."
            raise UserError(message, "--rows", f"Use at most {len(rows):,} rows.")
        rows.append(SamplePair(kind, formats.tag, text))
    return rows


def _write(kind: str, formats: LocaleFormats, rng: random.Random) -> locale_text.AlignedText | None:
    digits = formats.digits if formats.digits is not None and rng.random() < 0.5 else None
    if kind == "date":
        return locale_text.write_date(formats, rng.choice(formats.dates), _date(rng), digits)
    if kind == "time":
        return locale_text.write_time(formats, rng.choice(formats.times), _time(rng), digits)
    if kind == "datetime":
        time = locale_text.write_time(formats, rng.choice(formats.times), _time(rng), digits)
        if time is None:
            return None
        date = locale_text.write_date(formats, rng.choice(formats.dates), _date(rng), digits)
        return locale_text.join_date_time(formats, rng.choice(formats.joins), date, time)
    if kind == "number":
        value = _decimal(rng, places=rng.choice((0, 0, 1, 2, 2)))
        negative = value != 0 and rng.random() < 0.08
        return locale_text.write_number(
            formats, -value if negative else value, rng.random() < 0.75, digits
        )
    if kind == "amount":
        currency = rng.choice(formats.currencies)
        whole = currency == "JPY" or rng.random() < 0.25
        form = rng.choice(("symbol", "code", "name", "name"))
        return locale_text.write_amount(
            formats, _decimal(rng, 0 if whole else 2), currency, form, digits
        )
    return locale_text.write_words(formats, rng.randint(0, 999 if rng.random() < 0.97 else 9999))


def _date(rng: random.Random) -> dt.date:
    return FIRST_DATE + dt.timedelta(days=rng.randrange((LAST_DATE - FIRST_DATE).days + 1))


def _time(rng: random.Random) -> dt.time:
    return dt.time(rng.randrange(24), rng.randrange(60), rng.randrange(60))


def _decimal(rng: random.Random, places: int) -> Decimal:
    """Return a number of one to seven integer digits with ``places`` decimals."""
    length = rng.choices(range(1, 8), (5, 14, 22, 26, 18, 10, 5))[0]
    whole = rng.randrange(10 ** (length - 1) if length > 1 else 0, 10**length)
    return Decimal(whole * 10**places + rng.randrange(10**places)).scaleb(-places)


def _tab_separated(row: SamplePair) -> str:
    columns = row.text.source, row.text.target, row.kind, row.locale, _links(row.text)
    return "\t".join(columns)


def _links(text: locale_text.AlignedText) -> str:
    """Return the character alignment in Pharaoh's format.

    Characters of equal parts are aligned one by one (``0-0``); of other parts each character is
    possibly aligned with each (``0p0``).
    """
    links = []
    for source, target in text.parts:
        sources = range(*source)
        targets = range(*target)
        if text.source[slice(*source)] == text.target[slice(*target)]:
            links += [f"{s}-{t}" for s, t in zip(sources, targets, strict=True)]
        else:
            links += [f"{s}p{t}" for t, s in itertools.product(targets, sources)]
    return " ".join(links)
