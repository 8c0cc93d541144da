"""Losses and measures of attention in float64, for one sentence; the documentation shows them.

``A`` are the weights ``[target, source]``.
"""

import numpy as np


def doubly_stochastic(A):
    """Xu et al. 2015, §4.2.1, eq. 14: the total weight of each position should be 1."""
    return ((1 - A.sum(axis=0)) ** 2).sum()


def coverage_loss(A):
    """See et al. 2017, §2.3, eqs. 10 and 12: no step should attend to what others have read."""
    c = np.cumsum(A, axis=0) - A  # the sum of the steps before
    return np.minimum(A, c).sum()


def reinforce(log_probs, samples, A, b, reward_weight, entropy_weight):
    """Xu et al. 2015, §4.1: the loss of one sampled position for each of T tokens, not divided."""
    loss, T = 0.0, len(log_probs)
    for t in range(T):
        R = log_probs[t:].sum()  # a sample has no effect on earlier tokens
        a = A[t][A[t] > 0]
        entropy = -(a * np.log(a)).sum()
        loss -= reward_weight * (R - (T - t) * b) * np.log(A[t, samples[t]])
        loss -= entropy_weight * entropy
    return loss


def alignment_error_rate(links, sure, possible):
    """Och and Ney 2003, §4.1, of sets of links; sure links are possible too."""
    hits = len(links & sure) + len(links & possible)
    return 1 - hits / (len(links) + len(sure))


def normalized_entropy(a):
    """Return 0 for weights on one of several positions, and 1 for equal weights."""
    a = a / a.sum()
    p = a[a > 0]
    return -(p * np.log(p)).sum() / np.log(len(a))
