"""The steps of recurrent decoders in float64, for one sentence.

The documentation shows these functions. Vectors are columns, as in the papers.
"""

import numpy as np


def teacher_forcing(step, state, target, begin):
    """Return the log-probability of each token of a target, which is also the next input."""
    scores, previous = [], begin
    for token in target:
        log_probs, state = step(previous, state)
        scores.append(log_probs[token])
        previous = token  # the reference, whatever the model would have written
    return np.array(scores)


def bahdanau_step(y, s, attend, cell, readout):
    """Attend with the state before the step; y is the embedding of the previous token."""
    c, a = attend(s)
    s = cell(y, c, s)
    return readout(s, y, c), s, a


def maxout_readout(s, y, c, U_o, V_o, C_o, b_o=0):
    """Return the larger number of each pair of neighbours."""
    t = U_o @ s + V_o @ y + C_o @ c + b_o  # [2 * units]
    return t.reshape(-1, 2).max(axis=1)


def tanh_readout(s, y, c, U_o, V_o, C_o, b_o=0):
    """Return the readout with half as many weights."""
    return np.tanh(U_o @ s + V_o @ y + C_o @ c + b_o)


def luong_step(y, h, attentional, attend, cell, W_c):
    """Attend with the state of the step; ``attentional`` is that of the previous step."""
    h = cell(y, attentional, h)
    c, a = attend(h)
    attentional = np.tanh(W_c @ np.concatenate([c, h]))
    return attentional, h, a
