"""The check ``language``."""

import functools
import importlib.util
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field

from regard.components.checks.base import CheckContext, RowCheck, RowTexts, Texts
from regard.core.bounds import Positive, Share


class LanguageCheck(RowCheck):
    """Rows with a side that is confidently in another language; needs the extra regard[language].

    Attributes:
        languages: ISO 639-1 code of the language of each side. Sides without one are not checked.
        confidence: Minimum probability of another language.
        min_characters: Shorter sides are not checked.
        limit: Maximum share of rows in another language.
    """

    summary: ClassVar[str] = "have a side in another language"
    is_slow: ClassVar[bool] = True

    languages: Annotated[
        dict[str, str], Field(min_length=1, examples=[{"source": "en", "target": "de"}])
    ]
    confidence: Annotated[float, Field(gt=0.5, le=1.0)] = 0.8
    min_characters: Positive = 10
    limit: Share = 0.01

    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        for name in self.languages:
            languages = self.other_languages(name, row.by_name.get(name, ()))
            if next(languages, None) is not None:
                return True
        return False

    def details(self, row: RowTexts, context: CheckContext) -> Iterator[str]:
        for name, texts in row.by_name.items():
            for language in self.other_languages(name, texts):
                yield f"{name} is {language}"

    def other_languages(self, name: str, texts: Texts) -> Iterator[str]:
        """Yield the language of each text of a feature that is confidently in another one."""
        expected = self.languages.get(name)
        if expected is None:
            return
        for text in texts:
            if len(text.strip()) >= self.min_characters:
                language, probability = _identifier().classify(text)
                if language != expected and probability >= self.confidence:
                    yield str(language)


def known_languages() -> list[str]:
    """Return the codes of the languages that the model distinguishes; none without the package."""
    return sorted(_identifier().labels) if importlib.util.find_spec("py3langid") else []


@functools.cache  # the model takes half a second to load
def _identifier() -> Any:
    """Return the classifier of py3langid (Lui and Baldwin 2012); its model is in the package."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
