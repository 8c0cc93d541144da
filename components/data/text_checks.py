"""Checks of the texts of a row: their lengths, characters, encoding, scripts and languages."""

import functools
import importlib.util
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import ftfy

from regard.components.data.text_analysis import count_scripts
from regard.components.data.text_markup import find_entity, find_tokenization
from regard.components.settings.data_checks import DataChecksConfig, LanguageCheckConfig
from regard.core.characters import is_blank
from regard.core.formatting import truncate

# C0 except tab and line ends, C1, soft hyphen, zero-width characters, direction marks, line and
# paragraph separators, the replacement character, and private use.
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffd\ue000-\uf8ff\U000e0001-\U000e007f\U000f0000-\U0010ffff]"
    # A carriage return without a line feed: lines of another file ended with it.
    "|\r(?!\n)"
    # A joiner is part of the orthography of Persian and Hindi, and of emoji; U+200D also at the end
    # of a word, as in Malayalam.
    "|(?<![^\x00-\x7f])[\u200c\u200d]|\u200c(?![^\x00-\x7f])"
)
# The flags of England, Scotland and Wales are a black flag and a word in tags.
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a]+\U000e007f")
# A wrong encoding turns one letter into two or more adjacent ones, into a C1 control, or into a
# capital before a space that was a hard space: ten times as fast as ftfy's own test.
_SUSPICIOUS = re.compile("[^\x00-\x7f]{2}|[\x80-\x9f]|[ÂÃ] ")
# A script dominates a text with more than this share of its letters.
_DOMINANT_SHARE = 0.3
# A script is usual for a feature with at least this share of the letters of train.
USUAL_SHARE = 0.001

Texts = Sequence[Sequence[str]]


def check_texts(inputs: Texts, references: Texts, checks: DataChecksConfig) -> list[str]:
    """Return the names of the checks that find something in the texts of a row.

    Args:
        inputs: the texts of each text feature that the model receives.
        references: the texts of each text feature that the model predicts. All texts of a feature
            are checked, but only the first one counts for the length ratio.
        checks: those that are set: ``empty_side``, ``length_ratio`` (characters of the longest side
            divided by those of the shortest, at least 1), ``too_long``, ``same_sides`` (an input is
            also a reference), ``control_characters``, ``encoding``, ``html_entities`` and
            ``tokenization``.
    """
    sides = [texts for texts in (*inputs, *references) if texts]
    if not sides:
        return []
    lengths = [[0 if is_blank(text) else len(text.strip()) for text in texts] for texts in sides]
    first_lengths = [side[0] for side in lengths]
    names = []
    if checks.empty_side and min(map(min, lengths)) == 0:
        names.append("empty_side")
    if checks.length_ratio and len(first_lengths) > 1:
        ratio = max(first_lengths) / max(1, min(first_lengths))
        if ratio > checks.length_ratio.ratio:
            names.append("length_ratio")
    if checks.too_long and max(map(max, lengths)) > checks.too_long.characters:
        names.append("too_long")
    if checks.same_sides and _has_same_sides(inputs, references):
        names.append("same_sides")
    if checks.control_characters and any(control_characters(t) for side in sides for t in side):
        names.append("control_characters")
    if checks.encoding and any(fix_encoding(t) != t for side in sides for t in side):
        names.append("encoding")
    if checks.html_entities and any(find_entity(text) for side in sides for text in side):
        names.append("html_entities")
    if checks.tokenization and any(find_tokenization(text) for side in sides for text in side):
        names.append("tokenization")
    return names


def control_characters(text: str) -> list[str]:
    """Return the invisible control characters of a text in their order."""
    if text.isascii() and text.isprintable():
        return []
    controls = _CONTROL.findall(text)
    return _CONTROL.findall(_FLAG.sub("", text)) if controls else controls


def fix_encoding(text: str) -> str:
    """Return the text as it was before it was decoded with the wrong encoding."""
    if text.isascii() or not _SUSPICIOUS.search(text):
        return text
    return ftfy.fix_encoding(text)


def changed_part(text: str, other: str) -> str:
    """Return the part of a text that starts shortly before its first difference from another."""
    pairs = enumerate(zip(text, other, strict=False))
    start = max(0, next((i for i, pair in pairs if len({*pair}) > 1), 0) - 20)
    return ("…" if start else "") + truncate(text[start:])


def _has_same_sides(inputs: Texts, references: Texts) -> bool:
    """Return whether an input is a reference too; numbers and signs alone may be."""
    stripped = {text.strip() for texts in inputs for text in texts}
    return any(
        text.strip() in stripped and any(map(str.isalpha, text))
        for texts in references
        for text in texts
    )


def dominant_scripts(letters: Mapping[str, int]) -> list[str]:
    """Return the scripts with many of the letters in alphabetical order."""
    if len(letters) == 1:
        return list(letters)
    limit = _DOMINANT_SHARE * sum(letters.values())
    return sorted(script for script, count in letters.items() if count > limit)


def unusual_scripts(text: str, usual: Collection[str] | None) -> list[str]:
    """Return the scripts that dominate a text and are not usual; None: nothing is known."""
    scripts = dominant_scripts(count_scripts(text))
    return [] if usual is None else [script for script in scripts if script not in usual]


def usual_scripts(letters: Mapping[str, Mapping[str, int]]) -> dict[str, set[str]]:
    """Return the scripts that are usual for each feature.

    Args:
        letters: the letters of train by feature and script.
    """
    return {
        feature: {
            script
            for script, count in by_script.items()
            if count >= USUAL_SHARE * sum(by_script.values())
        }
        for feature, by_script in letters.items()
    }


def other_languages(
    texts: Mapping[str, Sequence[str]], check: LanguageCheckConfig
) -> Iterator[tuple[str, str]]:
    """Yield feature and language of each text that is confidently in another language.

    Args:
        texts: of each feature of a row.
        check: the expected languages, and when a text counts as another one.
    """
    for feature, expected in check.languages.items():
        for text in texts.get(feature, ()):
            if len(text.strip()) >= check.min_characters:
                language, probability = _identifier().classify(text)
                if language != expected and probability >= check.confidence:
                    yield feature, str(language)


def known_languages() -> list[str]:
    """Return the codes of the languages that the model distinguishes; none without the package."""
    return sorted(_identifier().labels) if importlib.util.find_spec("py3langid") else []


@functools.cache  # the model takes half a second to load
def _identifier() -> Any:
    """Return the classifier of py3langid (Lui and Baldwin 2012); its model is in the package."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
