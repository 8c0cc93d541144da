"""The keys of other toolkits' configurations, and the keys that they are in Regard.

The table ``other_toolkits.tsv`` has a line for each key: the toolkit, the path of the key in its
files (an option of a command without dashes, with ``_`` for ``-``), keys of Regard, and a remark.
Without a key of Regard, the remark is the reason why there is none. Several keys are separated by
``,``; alternatives of which a network has one, by ``/``.
"""

import csv
import functools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from regard.core.formatting import join_words
from regard.models.settings.annotations import models_in, sections_of, type_of
from regard.models.settings.base import KeyPath

# The pages about the toolkits, in docs/coming-from.
PAGES = {
    "OpenNMT-tf": "opennmt-tf.md",
    "OpenNMT-py": "opennmt-py-eole.md",
    "eole": "opennmt-py-eole.md",
    "JoeyNMT": "joeynmt.md",
    "Sockeye": "fairseq-sockeye.md",
    "fairseq": "fairseq-sockeye.md",
    "Keras": "keras.md",
}
_MIN_KEYS = 3  # fewer keys of a toolkit do not make a file one of its files


@dataclass(frozen=True)
class ForeignKey:
    """A key of another toolkit.

    Attributes:
        toolkit: The toolkit.
        path: The key in its files.
        places: The keys of Regard; of the alternatives in a place, a network has one.
        remark: What is different, or why there is no such key, in sentences.
    """

    toolkit: str
    path: KeyPath
    places: tuple[tuple[KeyPath, ...], ...]
    remark: str


@functools.cache
def read_table() -> tuple[ForeignKey, ...]:
    """Read the table of keys."""
    text = resources.files(__package__).joinpath("other_toolkits.tsv").read_text(encoding="utf-8")
    return tuple(
        ForeignKey(
            row["toolkit"],
            tuple(row["key"].split(".")),
            tuple(
                tuple(tuple(key.split(".")) for key in place.split("/"))
                for place in filter(None, row["regard"].split(", "))
            ),
            row["remark"],
        )
        for row in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    )


class KeyExplainer:
    """Explains the unknown keys of a file.

    Args:
        values: The values of the file, which determine the types of its sections.
        root: The model of the file.

    Attributes:
        toolkit: The toolkit that the file is for, by its keys that Regard does not have, or None.
    """

    def __init__(self, values: Any, root: type[BaseModel]):
        self.values, self.root = values, root
        unknown = {
            _normalized(path) for path in _paths_in(values) if not _exists(path, values, root)
        }
        counts = Counter(key.toolkit for key in read_table() if key.path in unknown)
        toolkit, count = max(counts.items(), key=lambda item: item[1], default=(None, 0))
        self.toolkit = toolkit if count >= _MIN_KEYS else None

    def explain(self, path: KeyPath) -> str:
        """Return what an unknown key is in Regard, as the end of a message, or nothing."""
        sentences: dict[str, dict[str, None]] = {}  # with the toolkits
        for key in _matches(path, self.toolkit):
            section = tuple(part for part in path[:-1] if isinstance(part, str))
            places = list(dict.fromkeys(self._regard_keys(key, section)))
            if places and all(place.endswith(f".{path[-1]}") for place in places):
                remark = f" {key.remark}" if key.remark and self.toolkit else ""
                return f" here. Did you mean {' or '.join(places)}?{remark}".removesuffix(".")
            meaning = f"is {join_words(places)}" if places else "has no equivalent"
            sentence = ". ".join(filter(None, (meaning, key.remark.removesuffix("."))))
            sentences.setdefault(sentence, {})[key.toolkit] = None
        # The name alone does not show a toolkit if others have a key of that name.
        users = {key.toolkit for key in _by_name().get(_normalized(path)[-1], [])}
        is_common = len(sentences) == 1 and len(users) > 1 and self.toolkit not in users
        return "".join(
            f". {path[-1]}{'' if is_common else f' of {join_words(list(toolkits))}'} {sentence}"
            for sentence, toolkits in sentences.items()
        )

    def explain_all(self, path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, str]]:
        """Yield what an unknown key and the keys in its value are in Regard."""
        yield path, self.explain(path)
        yield from self.explain_section(path, value)

    def explain_section(self, path: KeyPath, section: Any) -> Iterator[tuple[KeyPath, str]]:
        """Yield the keys in an unknown section that the table has, with what they are in Regard."""
        for inner in _paths_in(section, path):
            if text := self.explain(inner):
                yield inner, text

    def _regard_keys(self, key: ForeignKey, section: KeyPath) -> Iterator[str]:
        """Yield the keys of Regard that a key in a section is, those of the section alone."""
        nearby = [place for place in key.places if section and place[0][:-1] == section]
        for place in nearby or key.places:
            existing = [other for other in place if _exists(other, self.values, self.root)]
            same_name = (*section, place[0][-1])
            if section and _exists(same_name, self.values, self.root):
                existing = [same_name]
            yield ".".join(map(str, (existing or place)[0])) + (
                "" if existing else self._types_with(place[0])
            )

    def _types_with(self, path: KeyPath) -> str:
        """Return the types of a section that have a key, in parentheses."""
        *section, name = path
        types = [
            type_of(model)
            for place, model in sections_of(self.root)
            if place == tuple(section) and name in model.model_fields
        ]
        return f" (type: {' or '.join(types)})" if any(types) else ""


@functools.cache
def _by_name() -> dict[str | int, list[ForeignKey]]:
    keys = defaultdict(list)
    for key in read_table():
        keys[key.path[-1]].append(key)
    return keys


@functools.cache
def _top_sections() -> set[tuple[str, KeyPath]]:
    return {(key.toolkit, key.path[:1]) for key in read_table() if len(key.path) > 1}


def _matches(path: KeyPath, toolkit: str | None) -> list[ForeignKey]:
    """Return the keys that a key stands for: those that agree in the longest part of the path.

    The name of a toolkit's top section has that meaning at the top of a file only.
    """
    path = _normalized(path)
    keys = [
        key
        for key in _by_name().get(path[-1], [])
        if key.path == path or (key.toolkit, key.path) not in _top_sections()
    ]
    keys = [key for key in keys if key.toolkit == toolkit] or keys
    ranks = [(_common_end(key.path, path), -len(key.path)) for key in keys]
    return [key for key, rank in zip(keys, ranks, strict=True) if rank == max(ranks)]


def _common_end(path: KeyPath, other: KeyPath) -> int:
    """Return the number of parts at the end that two paths have in common."""
    pairs = list(zip(reversed(path), reversed(other), strict=False))
    return next((i for i, (part, match) in enumerate(pairs) if part != match), len(pairs))


def _normalized(path: KeyPath) -> KeyPath:
    """Return a path without positions in lists, and with ``_`` for ``-``."""
    return tuple(part.lower().replace("-", "_") for part in path if isinstance(part, str))


def _exists(path: KeyPath, values: Any, root: type[BaseModel]) -> bool:
    """Whether a file can have a key, by the types of its sections."""
    models = [root]
    for part in path:
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        if not fields:
            return False
        values = values.get(part) if isinstance(values, Mapping) else None
        models = _variants(fields[0], values)
    return True


def _variants(field: FieldInfo, value: Any) -> list[type[BaseModel]]:
    """Return the models of a section, of several variants the one that the value selects."""
    models = models_in(field.annotation)
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, Mapping):
        value = value.get("type")
    selected = value or getattr(field.get_default(call_default_factory=True), "type", None)
    return [model for model in models if type_of(model) == selected] or models


def _paths_in(values: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of every key in nested mappings."""
    if isinstance(values, Mapping):
        for name, value in values.items():
            yield (*path, name)
            yield from _paths_in(value, (*path, name))
