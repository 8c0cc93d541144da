"""Errors propose a setting of ``data.columns``."""

import functools
import re
from collections.abc import Mapping, Sequence

from regard.components.data import column_names
from regard.components.data.column_matching import (
    COMMON,
    VAGUE,
    best_columns,
    match_columns,
    rank_columns,
)
from regard.components.data.column_names import is_column_name
from regard.components.data.sources import Corpus
from regard.core.features import Feature
from regard.core.formatting import truncate
from regard.core.suggestions import suggest

_MAX_CHOICES = 100
# Texts that YAML reads as another type than a string.
_NOT_A_STRING = re.compile(r"|~|y|n|yes|no|on|off|true|false|null|[-+.]?\d.*", re.I)


def columns_remedy(corpus: Corpus, names: Sequence[str], missing: str) -> str:
    """Return how to set ``data.columns``, guessed from the names of a file's columns or keys."""
    nonempty = [name for name in names if name]
    if not nonempty:
        return "Check `data.columns` and `data.format`."
    if corpus.config.columns is not None:
        ways = match_columns(corpus, names)
        if len(ways) == 1 and _keeps_valid_columns(corpus, ways[0], names):
            return f"Set {columns_line(corpus, ways[0], names)}."
        return f"{suggest(missing, nonempty)}. Check `data.columns`."
    rest = list(range(min(len(names), _MAX_CHOICES)))
    match: list[int | None] = [None] * len(corpus.features)
    guesses = []
    ranked = [rank_columns(corpus, feature, names) for feature in corpus.features]
    # Features with a column of their own come first, so that others do not take it.
    for i in sorted(range(len(match)), key=lambda i: min(ranked[i].values(), default=VAGUE)):
        feature, ranks = corpus.features[i], ranked[i]
        if feature.optional and not best_columns(ranks, COMMON):
            continue
        if not rest:
            return f"{suggest(missing, names)}. Check `data.columns`."
        best = min(rest, key=functools.partial(_improbability, feature, names, ranks))
        if ranks.get(best, VAGUE) == VAGUE:
            guesses.append(i)
        match[i] = best
        rest.remove(best)
    ways = [match]
    if len(guesses) == 2:  # either may be the other one
        first, second = guesses
        if corpus.features[first].kind == corpus.features[second].kind:
            swapped = list(match)
            swapped[first], swapped[second] = match[second], match[first]
            ways.append(swapped)
    return f"Set {' or '.join(columns_line(corpus, way, names) for way in ways)}."


def _keeps_valid_columns(corpus: Corpus, match: Sequence[int | None], names: Sequence[str]) -> bool:
    """Return whether the settings of ``data.columns`` that name a column are those of a match."""
    configured = corpus.config.columns or {}
    return all(
        configured.get(feature.name) not in names
        or (index is not None and configured[feature.name] == names[index])
        for feature, index in zip(corpus.features, match, strict=True)
    )


def _improbability(
    feature: Feature, names: Sequence[str], ranks: Mapping[int, int], index: int
) -> tuple[int, bool, bool, bool]:
    """Return a key that is least for the column that most probably holds a feature."""
    last = names[index].rpartition(".")[2]
    words = column_names.words_of(last)
    is_number = any(map(column_names.NUMBER.fullmatch, words))
    is_id = any(map(column_names.ID.fullmatch, words))
    rank = ranks.get(index, VAGUE)
    return rank, is_number != feature.kind.is_number, is_id, not is_column_name(last)


def columns_setting(features: Sequence[Feature], indices: Sequence[int | None]) -> str:
    """Return the setting that reads features from columns by their numbers, as YAML."""
    pairs = [
        f"{feature.name}: {index + 1}"
        for feature, index in zip(features, indices, strict=True)
        if index is not None
    ]
    return f"`data.columns: {{{', '.join(pairs)}}}`"


def columns_line(corpus: Corpus, match: Sequence[int | None], names: Sequence[str]) -> str:
    """Return the setting that reads features from columns, as YAML."""
    pairs = [
        f"{feature.name}: {yaml_text(names[index]) if names[index] else index + 1}"
        for feature, index in zip(corpus.features, match, strict=True)
        if index is not None
    ]
    return f"`data.columns: {{{', '.join(pairs)}}}`"


def yaml_text(name: str) -> str:
    """Return the name of a column as YAML, in quotes if it would not be a string without them."""
    is_plain = re.fullmatch(r"\w[\w. -]*", name) and not _NOT_A_STRING.fullmatch(name)
    return name if is_plain else repr(truncate(name))
