"""The formulas of poolings, positions and Transformer blocks in float64, for one sentence.

The documentation shows these functions. Rows are positions: states H and X are ``[length, depth]``.
"""

import numpy as np


def softmax(e):
    """Turn scores into weights that sum to 1 along the last axis."""
    exponentials = np.exp(e - e.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def mean_pooling(H):
    """Return the mean of the states, and the equal weights."""
    a = np.full(len(H), 1 / len(H))
    return a @ H, a


def max_pooling(H):
    """Return the maximum of each component, and the share of components of each state."""
    winners = H.argmax(axis=0)  # one position for each component
    return H.max(axis=0), np.bincount(winners, minlength=len(H)) / H.shape[1]


def gate_pooling(H, W, b):
    """Return the mean of the gated states, and the normalised mean gate of each state."""
    g = 1 / (1 + np.exp(-(H @ W + b)))  # one gate per component, [length, depth]
    mean_gates = g.mean(axis=1)
    return (g * H).mean(axis=0), mean_gates / mean_gates.sum()


def self_attentive_pooling(H, W_1, W_2):
    """Return the hops' weighted sums of the states, concatenated, and the mean weights."""
    A = softmax(W_2 @ np.tanh(W_1 @ H.T))  # [hops, length]
    return (A @ H).ravel(), A.mean(axis=0)


def top_down_pooling(H, q):
    """Return the sum of the states weighted by their products with a query, and the weights."""
    a = softmax(H @ q)
    return a @ H, a


def hard_attention(a, V, random=None):
    """Return one value: that of a sample of ``a``, or without ``random`` of its maximum."""
    position = a.argmax() if random is None else random.choice(len(a), p=a)
    return V[position]


def sinusoids(length, depth):
    """Return one vector per position: sines in even components, cosines in odd ones."""
    component = np.arange(depth)
    frequency = 10000.0 ** (-2 * (component // 2) / depth)
    phase = np.arange(length)[:, None] * frequency
    return np.where(component % 2, np.cos(phase), np.sin(phase))


def rotate(X, positions):
    """Turn each pair of components (i, i + depth / 2) by the angle position * theta_i."""
    half = X.shape[1] // 2
    theta = 10000.0 ** (-np.arange(half) / half)
    phase = np.asarray(positions)[:, None] * theta
    turned = (X[:, :half] + 1j * X[:, half:]) * np.exp(1j * phase)
    return np.concatenate([turned.real, turned.imag], axis=1)


def relative_attention(Q, K, V, A_K, A_V):
    """Attend with a vector for each distance from -k to k, a row of A_K and of A_V."""
    steps, k = np.arange(len(Q)), len(A_K) // 2
    row = np.clip(steps - steps[:, None], -k, k) + k  # [target, source]
    scores = Q @ K.T + np.einsum("td,tsd->ts", Q, A_K[row])
    a = softmax(scores / np.sqrt(Q.shape[1]))
    return a @ V + np.einsum("ts,tsd->td", a, A_V[row]), a


def alibi_bias(length, heads):
    """Return what each head adds to its scores, ``[heads, target, source]``; heads = 2^n."""
    slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
    steps = np.arange(length)
    return -slopes[:, None, None] * abs(steps[:, None] - steps)


def layer_normalization(X, gamma, beta, epsilon=1e-5):
    """Scale each vector to mean 0 and variance 1, then by learned factors and offsets."""
    centered = X - X.mean(axis=-1, keepdims=True)
    variance = (centered**2).mean(axis=-1, keepdims=True)
    return gamma * centered / np.sqrt(variance + epsilon) + beta


def feed_forward(X, W_1, b_1, W_2, b_2):
    """Apply the same two layers to every position."""
    return np.maximum(X @ W_1 + b_1, 0) @ W_2 + b_2


def post_norm(X, sublayer, norm):
    """Normalise after the sum (Vaswani et al. 2017)."""
    return norm(X + sublayer(X))


def pre_norm(X, sublayer, norm):
    """Normalise the input of the sublayer; the sum is untouched (Xiong et al. 2020)."""
    return X + sublayer(norm(X))


def encoder_block(X, self_attention, network, norms, residual=post_norm):
    """Apply self-attention, then the feed-forward network, each with a residual and a norm."""
    X = residual(X, self_attention, norms[0])
    return residual(X, network, norms[1])


def decoder_block(X, self_attention, cross_attention, network, norms, residual=post_norm):
    """Apply causal self-attention, attention to the memory, then the feed-forward network."""
    X = residual(X, self_attention, norms[0])
    X = residual(X, cross_attention, norms[1])
    return residual(X, network, norms[2])


def cross_attention(A, B, e, W, b):
    """Attend from the words A to the words B with the score dot, and compose; weights, too."""
    weights = softmax(A @ B.T)
    C = weights @ B
    features = np.concatenate([A, C, A - C, A * C, e[:, None]], axis=1)
    return np.maximum(features @ W + b, 0), weights


def attention_flow(H, U, w):
    """Attend from the passage H to the question U and back; the features and both weights."""
    S = np.array([[w @ np.concatenate([h, u, h * u]) for u in U] for h in H])
    to_question, to_passage = softmax(S), softmax(S.max(axis=1))
    C, summary = to_question @ U, to_passage @ H
    return np.concatenate([H, C, H * C, H * summary], axis=1), to_question, to_passage


def hops(q, H, scores, cell):
    """Return the weights of each step; its context leads to the query of the next one."""
    distributions = []
    for score in scores:
        a = softmax(score(q, H))
        distributions.append(a)
        q = cell(a @ H, q)
    return distributions
