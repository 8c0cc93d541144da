"""Attention between matrices of queries, keys and values, in float64.

The documentation shows these functions.
"""

import numpy as np


def attention(Q, K, V, allowed=True):
    """Attend with vectors that are rows; each row of the weights A sums to 1."""
    E = Q @ K.T / np.sqrt(Q.shape[1])  # [target, source]
    E = np.where(allowed, E, -np.inf)
    A = np.exp(E - E.max(axis=1, keepdims=True))
    A = A / A.sum(axis=1, keepdims=True)
    return A @ V, A


def attention_of_columns(Q, K, V, allowed=True):
    """Attend with vectors that are columns; each column of the weights A sums to 1."""
    E = K.T @ Q / np.sqrt(len(Q))  # [source, target]
    E = np.where(allowed, E, -np.inf)
    A = np.exp(E - E.max(axis=0))
    A = A / A.sum(axis=0)
    return V @ A, A


def self_attention(X, W_Q, W_K, W_V, allowed=True):
    """Attend from the rows of X to the rows of X."""
    return attention(X @ W_Q, X @ W_K, X @ W_V, allowed)


def causal_mask(length):
    """Return where a target position may attend: to itself and to earlier positions."""
    steps = np.arange(length)
    return steps[None] <= steps[:, None]  # [target, source]


def multi_head(X, M, W_Q, W_K, W_V, W_O, heads, allowed=True):
    """Attend from X to M; each head has some columns of W_Q, W_K and W_V."""
    parts = zip(*(np.split(W, heads, axis=1) for W in (W_Q, W_K, W_V)), strict=True)
    outputs = [attention(X @ q, M @ k, M @ v, allowed) for q, k, v in parts]
    contexts, A = zip(*outputs, strict=True)
    return np.concatenate(contexts, axis=1) @ W_O, np.stack(A)


def softmax_gradient(a):
    """Return the derivative of each weight of a softmax by each score, ``[weight, score]``."""
    return np.diag(a) - np.outer(a, a)
