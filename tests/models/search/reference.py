"""Searches for one sentence, token by token; the documentation shows these functions.

``log_probs(prefix)`` returns the log-probability of each token after a tuple of tokens.
"""

import numpy as np


def greedy_search(log_probs, end, limit):
    """Take the most probable token at every step; return the tokens and their log-probability."""
    prefix, total = (), 0.0
    while end not in prefix and len(prefix) < limit:
        scores = log_probs(prefix)
        token = int(np.argmax(scores))
        prefix, total = (*prefix, token), total + scores[token]
    return prefix, total


def beam_search(log_probs, end, limit, size, alpha=0.0):
    """Return the hypotheses that ended among the best of a beam, with their scores."""
    beam, ended = [((), 0.0)], []
    for _ in range(limit):
        options = [
            ((*prefix, token), total + score)
            for prefix, total in beam
            for token, score in enumerate(log_probs(prefix))
            if score > -np.inf
        ]
        options.sort(key=lambda option: -option[1])
        ended += [option for option in options[:size] if option[0][-1] == end]
        beam = [option for option in options if option[0][-1] != end][:size]
    penalised = [(prefix, total / ((5 + len(prefix)) / 6) ** alpha) for prefix, total in ended]
    return sorted(penalised, key=lambda hypothesis: -hypothesis[1])
