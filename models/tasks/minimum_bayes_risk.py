"""Minimum Bayes risk decoding: the sample that is most similar to all samples of the model.

The graph computes sacreBLEU's sentence chrF and sentence BLEU.
"""

from typing import Any

import tensorflow as tf

from regard.models.search import Hypotheses, SamplingSearch, Search
from regard.models.search.base import MIN_SCORE, RowInputs, Step
from regard.models.tensors import State

# The columns of a matrix of n-grams. A product of two such matrices is exact in float32.
_COLUMNS = 4096
# What Python's `str.split` splits at.
_SPACE = r"[\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}"
_SPACE += r"\x{3000}]"
# sacreBLEU's tokenizer 13a, as replacements.
_TOKENIZATION = (
    *((_SPACE + r"+\z", ""), ("<skipped>", ""), ("-\n", ""), ("&quot;", '"'), ("&amp;", "&")),
    *(("&lt;", "<"), ("&gt;", ">"), (r"\A|\z|\n", " "), (r"([{-~[-` -&(-+:-@/])", r" \1 ")),
    *((r"([^0-9])([.,])", r"\1 \2 "), (r"([.,])([^0-9])", r" \1 \2"), (r"([0-9])(-)", r"\1 \2 ")),
)


class MbrSearch(Search):
    """Sort samples by their expected utility, an estimate of the negative Bayes risk.

    Eikema and Aziz 2020, "Is MAP Decoding All You Need? The Inadequacy of the Mode in Neural
    Machine Translation", §5; Freitag et al. 2022, "High Quality Rather than High Model Probability:
    Minimum Bayes Risk Decoding with Neural Metrics". The expected utility of a sample is its mean
    similarity to all samples, itself included, as references; from 0 to 100. Samples with the same
    text count as references, and are one hypothesis.

    Args:
        to_texts: returns ids ``[samples, length]`` with their lengths and the number of their row
            as texts ``[samples]``.
        utility: ``chrf`` or ``bleu``; see ``pairwise_utility``.
        n_best: the number of hypotheses to return.
        samples: the number of samples, and the other arguments of ``SamplingSearch``.
    """

    def __init__(self, to_texts: Any, utility: str, n_best: int, **options: Any):
        self.to_texts, self.utility, self.hypotheses = to_texts, utility, n_best
        self.sampling = SamplingSearch(**options)

    def run(self, step: Step, state: State, inputs: RowInputs) -> Hypotheses:
        samples = self.sampling.run(step, state, inputs)
        # Row by row: the memory is bounded, and no row can depend on another.
        spec = tf.TensorSpec([self.sampling.hypotheses], tf.float32)
        numbers = tf.range(tf.shape(samples.ids)[0])
        rows, parallel = (samples.ids, samples.lengths, numbers), {"parallel_iterations": 1}
        utility = tf.map_fn(self._expected_utility, rows, fn_output_signature=spec, **parallel)
        scores, order = tf.math.top_k(utility, self.hypotheses)
        ids, lengths, log_probs = (tf.gather(x, order, batch_dims=1) for x in samples[:3])
        return Hypotheses(ids, tf.where(scores == MIN_SCORE, 0, lengths), log_probs, scores)

    def _expected_utility(self, row: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        texts = self.to_texts(*row)
        utility = tf.reduce_mean(pairwise_utility(texts, self.utility), axis=1)
        numbers, (_, groups) = tf.range(tf.size(texts)), tf.unique(texts)
        first = tf.gather(tf.math.unsorted_segment_min(numbers, groups, tf.size(texts)), groups)
        return tf.where(numbers == first, tf.cast(utility, tf.float32), MIN_SCORE)


def pairwise_utility(texts: tf.Tensor, utility: str) -> tf.Tensor:
    """Return the utility of each text, as a hypothesis, for each text, as a reference.

    Args:
        texts: UTF-8, ``[n]``.
        utility: ``chrf``, sacreBLEU's sentence chrF2 (Popović 2015); or ``bleu``, its sentence
            BLEU with the tokenizer 13a, exponential smoothing and effective order.

    Returns:
        ``[n, n]`` float64, from 0 to 100; a row for each hypothesis.
    """
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")  # bytes that are not UTF-8
    if utility == "chrf":
        texts = tf.strings.regex_replace(texts, _SPACE, "")
        units = tf.strings.unicode_decode(texts, "UTF-8")
        return _chrf(_match_ngrams(units, 6))
    for pattern, replacement in _TOKENIZATION:
        texts = tf.strings.regex_replace(texts, pattern, replacement)
    words = tf.strings.split(tf.strings.regex_replace(texts, _SPACE, " "))
    return _bleu(_match_ngrams(words.with_values(tf.unique(words.values).idx), 4))


def _chrf(matches: tf.Tensor) -> tf.Tensor:
    hypothesis, reference = _totals(matches)
    orders = tf.reduce_sum(tf.cast((hypothesis > 0) & (reference > 0), tf.float64), axis=0)
    sums = (tf.reduce_sum(tf.math.divide_no_nan(matches, x), 0) for x in (hypothesis, reference))
    precision, recall = (tf.math.divide_no_nan(x, orders) for x in sums)
    return 100.0 * tf.math.divide_no_nan(5.0 * precision * recall, 4.0 * precision + recall)


def _bleu(matches: tf.Tensor) -> tf.Tensor:
    hypothesis, reference = _totals(matches)
    zeros = tf.cumsum(tf.cast(matches == 0, tf.float64))
    smoothed = tf.where(matches == 0, 2.0**-zeros, matches)
    logs = tf.where(hypothesis > 0, tf.math.log(smoothed / tf.maximum(hypothesis, 1.0)), 0.0)
    orders = tf.reduce_sum(tf.cast(hypothesis > 0, tf.float64), axis=0)
    mean = tf.math.divide_no_nan(tf.reduce_sum(logs, axis=0), orders)
    brevity = tf.minimum(1.0 - tf.math.divide_no_nan(reference[0], hypothesis[0]), 0.0)
    return tf.where(matches[0] > 0, 100.0 * tf.exp(brevity + mean), 0.0)


def _totals(matches: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the numbers of n-grams of hypotheses ``[orders, n, 1]`` and references."""
    totals = tf.linalg.diag_part(matches)  # a text shares all of its n-grams with itself
    return totals[:, :, None], totals[:, None]


def _match_ngrams(units: tf.RaggedTensor, max_order: int) -> tf.Tensor:
    """Return how many n-grams each pair of texts shares, ``[orders, n, n]`` float64.

    Args:
        units: The ids of characters or words, ``[n, (length)]``.
        max_order: The largest order.
    """
    count, rows = units.nrows(), units.value_rowids()
    unigrams = grams = tf.unique(units.flat_values).idx
    matches = []
    for order in range(max_order):
        if order:
            grams = _unique_pairs(grams[:-1], unigrams[order:])
        is_inside = rows[order:] == rows[: tf.size(grams)]
        matches.append(_count_matches(rows[order:][is_inside], grams[is_inside], count))
    return tf.cast(tf.stack(matches), tf.float64)


def _unique_pairs(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """Return ids from 0 of pairs of ids: equal pairs have equal ids."""
    size = tf.cast(tf.reduce_max(second), tf.int64) + 1
    return tf.unique(tf.cast(first, tf.int64) * size + tf.cast(second, tf.int64)).idx


def _count_matches(rows: tf.Tensor, grams: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Return the sum over all n-grams of the smaller of two texts' counts, ``[count, count]``.

    The k-th occurrence of an n-gram in one text matches the k-th occurrence in another.
    """
    size = tf.cast(tf.reduce_max(grams), tf.int64) + 1
    keys = tf.sort(rows * size + tf.cast(grams, tf.int64))
    occurrences = tf.range(tf.size(keys)) - tf.searchsorted(keys, keys)
    ids, rows = _unique_pairs(keys % size, occurrences), keys // size

    def add(matches: tf.Tensor, start: tf.Tensor) -> tf.Tensor:
        is_inside = (ids >= start) & (ids < start + _COLUMNS)
        indices = tf.stack([rows, tf.cast(ids - start, tf.int64)], axis=1)[is_inside]
        values = tf.ones(tf.shape(indices)[:1])
        present = tf.scatter_nd(indices, values, [count, _COLUMNS])
        return matches + tf.matmul(present, present, transpose_b=True)

    starts = tf.range(0, tf.size(ids), _COLUMNS)
    return tf.foldl(add, starts, tf.zeros([count, count]), parallel_iterations=1)
