"""Minimum Bayes risk decoding: choose the sample that is most like all others.

Eikema and Aziz 2022, "Sampling-Based Approximations to Minimum Bayes Risk Decoding for Neural
Machine Translation", §3: the samples are the hypotheses, and also the references that stand for the
distribution of the model. The sample with the highest expected utility is the output.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from regard.models.metrics.chrf_pairs import aggregate_chrf, pairwise_chrf

UTILITIES = ("chrf",)
# The number of texts times their characters up to which all pairs are compared. The average of the
# references takes a third of their time for 128 sentences of 92 characters (20 ms), and a thirtieth
# for 2,048. Delete the limit and the average if a choice never has more samples.
MAX_PAIR_CHARACTERS = 1 << 20


def expected_chrf(texts: Sequence[str], weights: np.ndarray) -> np.ndarray:
    """Return the expected chrF of each text.

    It is the mean over all pairs (`pairwise_chrf`) or, above `MAX_PAIR_CHARACTERS`, the chrF
    against the average of the references (`aggregate_chrf`).

    Args:
        texts: different hypotheses, which are also the references.
        weights: ``[texts]``, the probability of each reference.

    Returns:
        ``[texts]``, 0 to 100.
    """
    if len(texts) * sum(map(len, texts)) > MAX_PAIR_CHARACTERS:
        return aggregate_chrf(texts, weights)
    return pairwise_chrf(texts) @ weights


def choose_sample(samples: Sequence[str]) -> int:
    """Return the number of the sample with the highest expected chrF; of equal ones the first.

    Args:
        samples: at least one text. A text that was drawn twice counts twice as a reference.
    """
    counts = Counter(samples)
    weights = np.array([*counts.values()]) / len(samples)
    best = int(np.argmax(expected_chrf([*counts], weights)))
    return samples.index([*counts][best])
