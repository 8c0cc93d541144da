"""The recurrent encoder in float64, for one sentence; the documentation shows these functions.

Vectors are columns, as in the papers.
"""

import numpy as np


def sigmoid(x):
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def gru_step(x, h, W, U, b, b_h):
    """Cho et al. 2014, §2.3; W, U and b have the rows of both gates and of the candidate."""
    (x_z, x_r, x_h), (h_z, h_r, h_h) = np.split(W @ x + b, 3), np.split(U @ h, 3)
    z, r = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
    return z * h + (1 - z) * np.tanh(x_h + r * (h_h + b_h))


def annotations(X, forward, backward, h_0):
    """Bahdanau et al. 2015, §3.2: what both directions have read up to each word of X."""
    ahead, back = [h_0], [h_0]
    for x in X:
        ahead.append(forward(x, ahead[-1]))
    for x in X[::-1]:
        back.append(backward(x, back[-1]))
    return np.concatenate([ahead[1:], back[:0:-1]], axis=1)
