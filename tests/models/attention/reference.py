"""The formulas of attention in NumPy, which docs/explanation/attention.md shows.

They read like the papers: one query, one step, no batches and no masks. ``q`` is a query ``[d_q]``,
``k`` a key ``[d_k]``, ``K`` and ``V`` are all keys and values of a source, one a row. A score
returns ``e``, a number for one key; an alignment turns the numbers ``e`` ``[source]`` of all keys
into the weights ``a`` ``[source]``. A matrix is multiplied from the left, as in ``W q``: it is the
transpose of the kernel that Keras stores.

``tests/models/attention/batches.py`` applies them to batches and to the weights of layers.
"""

import numpy as np


def attend(q, K, V, score, align):
    """Bahdanau et al. 2015, §3.1, eqs. 5 and 6: the context and the weights."""
    e = np.array([score(q, k) for k in K])
    a = align(e)
    return a @ V, a


# Scores.


def additive(q, k, W, U, b, z):
    """Bahdanau et al. 2015, §A.1.2; the paper has no b, and its z is v_a."""
    return z @ np.tanh(W @ q + U @ k + b)


def deep(h, layers, z):
    """Pavlopoulos et al. 2017: more hidden layers after h, which is the tanh of the first one."""
    for W, b in layers:
        h = np.tanh(W @ h + b)
    return z @ h


def coverage(q, k, c, W, U, w, b, z):
    """See et al. 2017, §2.3, eq. 11, where c is the sum of the weights of k in all steps before."""
    return z @ np.tanh(W @ q + U @ k + w * c + b)


def concat(q, k, W, z):
    """Luong et al. 2015, §3.1; the paper's z is v_a."""
    return z @ np.tanh(W @ np.concatenate([q, k]))


def dot(q, k):
    """Luong et al. 2015, §3.1."""
    return q @ k


def scaled_dot(q, k):
    """Vaswani et al. 2017, §3.2.1."""
    return q @ k / np.sqrt(len(k))


def general(q, k, W):
    """Luong et al. 2015, §3.1, divided by the root of the query's width."""
    return q @ W @ k / np.sqrt(len(q))


def low_rank(q, k, A, B):
    """Kim et al. 2017, §2, divided by the root of the rank."""
    return (A @ q) @ (B @ k) / np.sqrt(len(A))


def cosine(q, k, tau):
    """Graves et al. 2014, §3.3.1, with one learned tau for all queries."""
    return np.exp(tau) * (q @ k) / (np.linalg.norm(q) * np.linalg.norm(k))


def location(q, s, W):
    """Luong et al. 2015, §3.1, eq. 8: s is the position of the key, of which W has one row each."""
    return (W @ q)[s] if s < len(W) else -np.inf


# Alignments.


def softmax(e):
    """Bahdanau et al. 2015, §3.1, eq. 6. Without the maximum, large scores would overflow."""
    a = np.exp(e - e.max())
    return a / a.sum()


def hard(e):
    """Xu et al. 2015, §4.1, in inference: the best position."""
    a = np.zeros(len(e))
    a[np.argmax(e)] = 1
    return a


def sample(e, g):
    """Xu et al. 2015, §4.1, in training, where g is Gumbel noise: a sample of softmax(e)."""
    return hard(e + g)


def sparsemax(e):
    """Martins and Astudillo 2016, §2.2, algorithm 1.

    tau makes the sum 1. It is the largest of (the sum of the k best scores - 1) / k over all k.
    """
    best = -np.sort(-e)
    tau = max((best[:k].sum() - 1) / k for k in range(1, len(e) + 1))
    return np.maximum(e - tau, 0)


def top_k(e, k):
    """Gupta et al. 2021, §2: the softmax of the k best scores; of equal ones the first count."""
    best = np.argsort(-e, kind="stable")[:k]
    a = np.zeros(len(e))
    a[best] = softmax(e[best])
    return a


def thresholded(e, threshold):
    """Ham et al. 2020, simplified: small weights become 0, but never the largest one."""
    a = softmax(e)
    a[a < min(threshold, a.max())] = 0
    return a / a.sum()


def window(e, p, D):
    """Luong et al. 2015, §3.2: the softmax of the positions from p - D to p + D."""
    is_inside = np.abs(np.arange(len(e)) - p) <= D
    a = np.zeros(len(e))
    a[is_inside] = softmax(e[is_inside]) if is_inside.any() else 0
    return a


def local_m(e, t, D):
    """Luong et al. 2015, §3.2, local-m: the window of step t; the last steps share a window."""
    return window(e, min(t, len(e) - 1), D)


def local_p(e, q, D, W_p, v_p):
    """Luong et al. 2015, §3.2, local-p, eqs. 9 and 10: a predicted window and a Gaussian."""
    S, sigma = len(e), D / 2
    p = S * sigmoid(v_p @ np.tanh(W_p @ q))
    s = np.arange(S)
    return window(e, p, D) * np.exp(-((s - p) ** 2) / (2 * sigma**2))


def sigmoid(x):
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


# Uses of the weights.


def multi_head(q, K, V, W_Q, W_K, W_V, W_O):
    """Vaswani et al. 2017, §3.2.2; W_Q, W_K and W_V are lists of one matrix per head."""
    heads, weights = [], []
    for W_q, W_k, W_v in zip(W_Q, W_K, W_V, strict=True):
        c, a = attend(W_q @ q, K @ W_k.T, V @ W_v.T, scaled_dot, softmax)
        heads.append(c)
        weights.append(a)
    return W_O @ np.concatenate(heads), weights


def pointer(u, C=None):
    """Vinyals et al. 2015, §2.3; with C Bello et al. 2017, §A.2. u are the scores of the inputs."""
    return softmax(u if C is None else C * np.tanh(u))


def pointer_generator(P_vocab, a, x, p_gen):
    """See et al. 2017, §2.2, eq. 9: x are the source's tokens, ids of the extended vocabulary."""
    P = p_gen * P_vocab
    for i, token in enumerate(x):
        P[token] += (1 - p_gen) * a[i]
    return P
