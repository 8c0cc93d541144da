"""The section ``data.protect``: spans of the source that outputs repeat unchanged."""

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from regard.models.protected_spans import INLINE, PATTERNS
from regard.models.settings.base import Listed, Problem, Section

Pattern = Annotated[str, Field(min_length=1, max_length=1000)]
Kind = Literal["urls", "emails", "numbers", "markup", "placeholders"]


class NumberRule(Section):
    """A replacement in the numbers of a source.

    Attributes:
        pattern: What to replace, in RE2 syntax; every match.
        replacement: The new text; \\1 is the first group.
    """

    pattern: Annotated[Pattern, Field(examples=[","])]
    replacement: Annotated[str, Field(max_length=100, examples=["."])]


class ProtectConfig(Section):
    """Spans of the source that outputs contain exactly once and unchanged.

    A span is a numbered token for the model. In training, spans with the same text on both sides
    become the same token; others stay text.

    Attributes:
        kinds: What is protected: urls, emails, numbers, markup (tags such as <b> and </b>,
            entities) and placeholders ({0}, %s, ${name}).
        patterns: Own patterns in RE2 syntax, whose matches are protected, too.
        number_rules: Rules for the format of numbers in outputs, applied to the numbers of the
            source in this order. []: numbers do not change.
        placement: How outputs get markup and placeholders. tokens: as tokens, which the training
            data must contain; attention: the model does not see them, and they enclose or precede
            the words that attend to their words of the source.
    """

    kinds: Annotated[Listed[Kind], Field(examples=[["urls", "markup"]])] = ()
    patterns: Annotated[
        Listed[Pattern], Field(max_length=32, examples=[[r"\b[A-Z]{2}-[0-9]+\b"]])
    ] = ()
    number_rules: Annotated[Listed[NumberRule], Field(max_length=32)] = ()
    placement: Literal["tokens", "attention"] = "tokens"

    @property
    def has_markup(self) -> bool:
        """Whether tags are protected."""
        return "markup" in self.kinds

    @property
    def by_attention(self) -> bool:
        """Whether attention places markup and placeholders."""
        return self.placement == "attention"

    def pattern(self) -> str:
        """Return the RE2 pattern of all spans."""
        own = [f"(?:{pattern})" for pattern in self.patterns]
        kinds = {name: text for name, text in PATTERNS.items() if name in self.kinds}
        first = [kinds.pop("markup")] if self.has_markup else []
        return "|".join((*first, *own, *kinds.values()))

    def inline_pattern(self) -> str:
        """Return the RE2 pattern of the spans that attention places; empty if there are none."""
        names = [name for name in INLINE if name in self.kinds and self.by_attention]
        return "|".join(PATTERNS[name] for name in names)

    def own_problems(self) -> Iterator[Problem]:
        """Yield keys without effect."""
        if not (self.kinds or self.patterns):
            yield Problem((), "protects nothing; list kinds or patterns, or remove it")
        if self.number_rules and "numbers" not in self.kinds:
            yield Problem(("number_rules",), "has no effect without numbers in kinds; remove it")
        if self.by_attention and not set(self.kinds) & set(INLINE):
            message = f"attention places {' and '.join(INLINE)} only, and kinds has neither"
            yield Problem(("placement",), f"{message}; use tokens")
        for index, rule in enumerate(self.number_rules):
            groups = [int(number) for number in re.findall(r"\\([0-9])", rule.replacement)]
            if max(groups, default=0) > rule.pattern.count("("):
                path = ("number_rules", index, "replacement")
                yield Problem(path, "refers to a group that the pattern does not have")
