"""Which columns hold the features of a row, by their names."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from regard.components.data.column_names import common_features, language_of, normal_form
from regard.components.data.sources import Corpus
from regard.core.features import Feature

# Columns that are tried for one feature: more of them are ambiguous in any case.
_MAX_CANDIDATES = 4
# Short names that mean something else, unless another column is a language and no third one exists.
_DOUBTFUL_LANGUAGES = frozenset(("id", "no", "nr"))
# Ranks of a name for a feature: its own name, spelled in another way, a common name, a vague one.
EXACT, OWN, COMMON, VAGUE = range(4)


def match_columns(corpus: Corpus, names: Sequence[str]) -> list[list[int | None]]:
    """Return the ways to read features from columns with names: one, several or none.

    The name of a feature counts more than a common name of its columns, and that more than a
    vague one. Languages are vague unless ``data.checks.language`` gives that of the feature.
    """
    ranks = {feature.name: rank_columns(corpus, feature, names) for feature in corpus.features}
    own_columns = {name: best_columns(ranks[name], OWN) for name in ranks}
    claims = set(itertools.chain.from_iterable(own_columns.values()))
    choices = []
    for feature in corpus.features:
        if not feature.optional:
            free = {i: rank for i, rank in ranks[feature.name].items() if i not in claims}
            choices.append(own_columns[feature.name] or best_columns(free, VAGUE))
    matches = list(itertools.islice(_assignments(choices), 3))
    return [_add_optional(corpus, match, ranks) for match in matches]


def best_columns(ranks: Mapping[int, int], limit: int) -> list[int]:
    """Return the columns of the best rank, if it is not above the limit."""
    best = min(ranks.values(), default=limit + 1)
    columns = [i for i, rank in ranks.items() if rank == best and rank <= limit]
    return columns[:_MAX_CANDIDATES]


def rank_columns(corpus: Corpus, feature: Feature, names: Sequence[str]) -> dict[int, int]:
    """Return the columns whose names can mean a feature, with their ranks."""
    check = corpus.config.checks.language
    language = (check.languages.get(feature.name) if check else None) or ""
    is_text = feature.tokenized
    codes = [language_of(name) for name in names]
    languages = {i: code for i, code in enumerate(codes) if code}
    lasts = {i: names[i].rpartition(".")[2].lower() for i in languages}
    is_other = {i: last not in _DOUBTFUL_LANGUAGES for i, last in lasts.items()}
    has_doubtful = any(is_other.values()) and len(names) <= len(corpus.features)
    ranks: dict[int, int] = {}
    for i, name in enumerate(names):
        rank = common_features(name).get(feature.name)
        if name == feature.name:
            ranks[i] = EXACT
        elif normal_form(name) == normal_form(feature.name):
            ranks[i] = OWN
        elif rank is not None:
            ranks[i] = OWN + rank
        elif is_text and i in languages and (is_other[i] or has_doubtful):
            is_own = language.lower().split("-")[0] == languages[i]
            ranks[i] = COMMON if is_own else VAGUE
    return ranks


def _assignments(choices: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the ways to choose a column for each feature, no column twice."""
    if not choices:
        yield []
        return
    for column in choices[0]:
        rest = [_without(columns, column) for columns in choices[1:]]
        yield from ([column, *others] for others in _assignments(rest))


def _without(columns: Sequence[int], column: int) -> list[int]:
    return [other for other in columns if other != column]


def _add_optional(
    corpus: Corpus, match: Sequence[int], ranks: Mapping[str, Mapping[int, int]]
) -> list[int | None]:
    """Return the columns of all features; an optional one has its column if it has only one."""
    required = iter(match)
    indices: list[int | None] = []
    for feature in corpus.features:
        if not feature.optional:
            indices.append(next(required))
            continue
        free = {i: rank for i, rank in ranks[feature.name].items() if i not in match}
        columns = best_columns(free, COMMON)
        indices.append(columns[0] if len(columns) == 1 else None)
    return indices


def find_name(name: str, names: Sequence[str]) -> int | None:
    """Return the index of a name, also if it is spelled in another way; None if it is unclear."""
    if name in names:
        return names.index(name)
    form = normal_form(name)
    others = [i for i, other in enumerate(names) if form and normal_form(other) == form]
    return others[0] if len(others) == 1 else None
