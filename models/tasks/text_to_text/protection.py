"""Protected spans in an exported graph: sources, a search that keeps spans, and tokenizers."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from regard.models.protected_spans import CLOSE, LITERALS, OPEN, SLOTS
from regard.models.search import Hypotheses, Search
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.protect import ProtectConfig
from regard.models.settings.search import SearchLimits
from regard.models.tasks.copy_tokenizer import string_tokens
from regard.models.tasks.inline_spans import InlineSpans, put_in, take_out
from regard.models.tasks.protected_sources import ProtectedSources, outlined, protect_sources
from regard.models.tasks.protecting_tokenizer import ProtectingTokenizer, slots_of_tokens
from regard.models.tasks.search_outputs import token_ids
from regard.models.tasks.text_preprocessing import limit_characters
from regard.models.vocabulary import PAD

# Characters before spans are replaced, as a multiple of what the tokens can hold without spans.
_RAW_SIZE = 4


class Protection:
    """What a model with ``data.protect`` does to its sources and its search.

    Args:
        model: The trained model.
        tokenizers: Those of ``source`` and ``target``.
        config: The section ``data.protect``.
        search: The section ``search``.
        tags: The tags that begin the sources, which are no markup.
    """

    def __init__(
        self,
        model: Seq2Seq,
        tokenizers: Mapping[str, Any],
        config: ProtectConfig,
        search: SearchLimits,
        tags: Sequence[str],
    ):
        self._model, self._tokenizers, self._config = model, tokenizers, config
        self._search, self._tags = search, tags
        # Constants of the graph.
        self._slots = {side: slots_of_tokens(tokenizers[side]) for side in ("source", "target")}

    def encode(self, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, ProtectingTokenizer]:
        """Return what ``ServedTextOutput._encode`` returns, with symbols for spans."""
        limit = self._search.max_source_length
        error = None
        if self._search.long_source == "refuse":
            error = f"a source has more than the {limit} tokens of max_source_length"
        source, is_cut = limit_characters(source, _RAW_SIZE * limit)
        tag = tf.zeros_like(source)
        if self._tags:
            pattern = rf"^\s*<(?:{'|'.join(map(re.escape, self._tags))})>"
            rest = tf.strings.regex_replace(source, pattern, "")
            length = tf.strings.length(source) - tf.strings.length(rest)
            tag = tf.strings.substr(source, tf.zeros_like(length), length)
            source = rest
        sources = protect_sources(source, self._config)
        sources = sources._replace(texts=tf.strings.join([tag, sources.texts]))
        texts = sources.texts
        if error is not None:  # what was cut counts as too long, too
            texts = tf.where(is_cut > 0, tf.strings.join([texts, "\n" + "x " * (limit + 1)]), texts)
        tokenizer = self._tokenizers["source"]
        ids, cut = token_ids(tokenizer, texts, limit, error)
        placement = None
        if self._config.inline_pattern():
            ids, spans = take_out(ids, self._slots["source"], sources.by_attention, tokenizer)
            placement = self._placement(ids, spans)
        target, slots = self._tokenizers["target"], self._slots["target"]
        protecting = ProtectingTokenizer(target, self._config, sources, slots, placement)
        return ids, tf.maximum(cut, is_cut), protecting

    def source_tokenizer(self, sources: ProtectedSources) -> ProtectingTokenizer:
        """Return the tokenizer that shows the tokens of these sources."""
        tokenizer, slots = self._tokenizers["source"], self._slots["source"]
        return _SourceTokenizer(tokenizer, self._config, sources, slots)

    def _placement(self, encoded: tf.Tensor, spans: InlineSpans) -> Any:
        """Return the function that puts the spans into outputs ``[batch * n, (length)]``."""

        def place(ids: tf.RaggedTensor) -> tf.RaggedTensor:
            copies = ids.nrows(tf.int32) // tf.maximum(tf.shape(encoded)[0], 1)
            rows = tf.repeat(tf.range(tf.shape(encoded)[0]), copies)
            inputs = tf.gather(encoded, rows)
            of_rows = InlineSpans(*(tf.gather(value, rows) for value in spans))
            _, weights = self._model.teacher_force(inputs, ids.to_tensor(PAD))
            weights = tf.cast(weights, tf.float32)
            return put_in(ids, weights, inputs, of_rows, self._tokenizers)

        def put_in_some(ids: tf.RaggedTensor) -> tf.RaggedTensor:
            has_spans = tf.reduce_any(spans.order >= 0) & (tf.size(ids.values) > 0)
            return tf.cond(has_spans, outlined(lambda: place(ids)), lambda: ids)

        return put_in_some

    def run_search(
        self,
        encoded: tf.Tensor,
        tokenizer: ProtectingTokenizer,
        search: Search,
        limits: tf.Tensor,
        **options: Any,
    ) -> Hypotheses:
        """Search outputs with every symbol of their source.

        Without any symbol, the search does not count them.
        """
        slots = self._slots["target"][None]

        def constrained() -> Hypotheses:
            has = _contains(tf.gather(self._slots["source"], encoded))
            pairs = has[:, OPEN:CLOSE] * has[:, CLOSE:]  # of a cut source, a tag can be missing
            singles = has[:, :LITERALS]
            count = tf.reduce_sum(singles, axis=1) + 2 * tf.reduce_sum(pairs, axis=1)
            if "phrases" in options:  # a phrase contains its spans, and may be repeated
                in_phrases = _contains(tf.gather(self._slots["target"], options["phrases"]))
                singles = tf.where(in_phrases[:, :LITERALS] > 0, -singles, singles)
            least = options.get("prefix", encoded[:, :0]), options.get("phrases", encoded[:, :0])
            fixed = sum(tf.reduce_sum(tf.cast(x != PAD, tf.int32), axis=1) for x in least)
            longest = tf.maximum(limits, tf.where(count > 0, count + fixed + 1, 1))
            return self._model.search(
                encoded, search, longest, **options, slots=slots, singles=singles, pairs=pairs
            )

        def plain() -> Hypotheses:
            return self._model.search(encoded, search, limits, **options, slots=slots)

        return tf.cond(tokenizer.sources.has_spans, outlined(constrained), plain)


class _SourceTokenizer(ProtectingTokenizer):
    """The tokenizer of the sources themselves."""

    def string_tokens(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return the tokens of the protected sources ``[batch]`` that the model reads."""
        tokens = string_tokens(self.tokenizer, texts, split=False)
        ids = self.tokenizer.string_to_id(tokens.values)
        slots = tf.gather(self._slots, ids)
        places = tf.stack([tf.cast(tokens.value_rowids(), tf.int32), tf.maximum(slots, 0)], axis=1)
        is_inline = tf.gather_nd(self.sources.by_attention, places) & (slots >= 0)
        return tf.ragged.boolean_mask(tokens, tokens.with_values(~is_inline))


def _contains(slots: tf.Tensor) -> tf.Tensor:
    """Return 1 for each slot that occurs in ``slots`` ``[batch, n]``, int32 ``[batch, SLOTS]``."""
    return tf.reduce_max(tf.one_hot(slots, SLOTS, dtype=tf.int32), axis=1)
