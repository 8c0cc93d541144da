"""Summarisation is text to text: a long one to a short one."""

from __future__ import annotations

from models.tasks.summarisation import DESCRIPTION
from models.tasks.text_to_text import TextToText


class Summarisation(TextToText):
    """Long texts and their summaries, of which there may be several."""

    description = DESCRIPTION
    answer = "summary"


TASK = Summarisation()
