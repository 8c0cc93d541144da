"""The languages of texts, by py3langid (Lui and Baldwin 2012), whose model is in the package."""

import functools
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regard.components.settings.data_checks import LanguageCheckConfig


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


def is_installed() -> bool:
    """Return whether the package is there."""
    return importlib.util.find_spec("py3langid") is not None


def known_languages() -> list[str]:
    """Return the codes of the languages that the model distinguishes."""
    return sorted(_identifier().labels)


@functools.cache  # the model takes half a second to load
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
