"""Translation is text to text, and nothing else."""

from __future__ import annotations

from models.tasks.text_to_text import TextToText
from models.tasks.translation import DESCRIPTION


class Translation(TextToText):
    """Pairs of texts: translation, normalisation, and whatever else is rewritten."""

    description = DESCRIPTION
    answer = "translation"


TASK = Translation()
