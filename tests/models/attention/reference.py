"""The formulas of scores and alignments in float64, one number at a time."""

import math

import numpy as np


def number(name, q, k, s, weights):
    """The score of one query vector with one key vector at source position ``s``."""
    if name == "dot":
        return q @ k
    if name == "scaled_dot":
        return q @ k / math.sqrt(len(q))
    if name == "general":
        (kernel,) = weights
        return q @ (kernel.T / math.sqrt(len(q))) @ k
    if name == "low_rank":
        query_kernel, key_kernel = weights
        return q @ (query_kernel @ key_kernel.T / math.sqrt(query_kernel.shape[1])) @ k
    if name == "additive":
        query_kernel, key_kernel, bias, vector, *deeper = weights
        return perceptron(query_kernel.T @ q + key_kernel.T @ k + bias, vector, deeper)
    if name == "concat":
        kernel, vector, *deeper = weights
        return perceptron(kernel.T @ np.concatenate([q, k]), vector, deeper)
    if name == "cosine":
        (temperature,) = weights
        return np.exp(temperature) * (q @ k) / (np.linalg.norm(q) * np.linalg.norm(k))
    if name == "location":
        (kernel,) = weights
        return (kernel.T @ q)[s] if s < kernel.shape[1] else -np.inf
    raise KeyError(name)


def perceptron(projected, vector, deeper):
    """The output of the hidden layers, the first of which is projected already."""
    hidden = np.tanh(projected)
    for kernel, bias in zip(deeper[::2], deeper[1::2], strict=True):
        hidden = np.tanh(hidden @ kernel + bias)
    return vector[:, 0] @ hidden


def scores(name, query, keys, weights):
    """``[batch, target, source]``."""
    weights = [np.asarray(w, "float64") for w in weights]
    query, keys = np.asarray(query, "float64"), np.asarray(keys, "float64")
    result = np.zeros((query.shape[0], query.shape[1], keys.shape[1]))
    for b, t, s in np.ndindex(*result.shape):
        result[b, t, s] = number(name, query[b, t], keys[b, s], s, weights)
    return result


def softmax(z):
    """Norm of a vector, which may be empty."""
    e = np.exp(z - z.max()) if len(z) else z
    return e / e.sum() if len(z) else z


def sparsemax(z):
    """max(z - τ, 0); no k of the scores may weigh more than 1, and those above τ weigh just that.

    So τ is the greatest of (the sum of the k best - 1) / k over all k.
    """
    threshold = max((np.sort(z)[len(z) - k :].sum() - 1) / k for k in range(1, len(z) + 1))
    return np.maximum(z - threshold, 0)


def align(name, z, q, t, options, weights):
    """The weights of one step: scores ``z`` of the true source positions, query vector, step."""
    if not len(z):
        return z
    steps = np.arange(len(z))
    result = np.zeros(len(z))
    if name == "soft":
        result = softmax(z)
    elif name == "hard":
        result[np.argmax(z)] = 1
    elif name == "sparsemax":
        result = sparsemax(z)
    elif name == "top_k":
        best = np.argsort(-z, kind="stable")[: options["k"]]
        result[best] = softmax(z[best])
    elif name == "thresholded":
        soft = softmax(z)
        is_kept = soft >= min(options.get("threshold", 0.05), soft.max())
        result[is_kept] = soft[is_kept] / soft[is_kept].sum()
    elif name == "local_m":
        inside = np.abs(steps - min(t, len(z) - 1)) <= options["window"]
        result[inside] = softmax(z[inside])
    elif name == "local_p":
        kernel, vector = (np.asarray(w, "float64") for w in weights)
        centers = len(z) / (1 + np.exp(-(np.tanh(q @ kernel) @ vector[:, 0])))
        inside = np.abs(steps - centers) <= options["window"]
        result[inside] = softmax(z[inside])
        deviation = options["window"] / 2
        result *= np.exp(-((steps - centers) ** 2) / (2 * deviation**2))
    else:
        raise KeyError(name)
    return result


def alignment(name, scored, query, source_lengths, options, weights, position=None):
    """``[batch, target, source]``: 0 behind each row's length."""
    result = np.zeros(scored.shape)
    for b, t in np.ndindex(*scored.shape[:2]):
        true = scored[b, t, : source_lengths[b]].astype("float64")
        step = t if position is None else position[b, t]
        query_vector = np.asarray(query[b, t], "float64")
        result[b, t, : source_lengths[b]] = align(name, true, query_vector, step, options, weights)
    return result


def attention(layer, query, memory, source_lengths, position=None):
    """Context and weights of an ``Attention``."""
    names, options, weights = {}, {}, {}
    for part in ("score", "alignment"):
        value = layer.settings[part]
        options[part] = value if isinstance(value, dict) else {"type": value}
        names[part] = options[part]["type"]
        weights[part] = getattr(layer, part).trainable_weights
    keys, values = memory, memory
    if layer.settings["values"] == "split":
        keys, values = np.split(memory, [memory.shape[-1] // 2], axis=-1)
    if names["score"] == "location":
        source_lengths = np.minimum(source_lengths, options["score"]["max_source"])
    scored = scores(names["score"], query, keys, weights["score"])
    result = alignment(
        names["alignment"],
        scored,
        query,
        source_lengths,
        options["alignment"],
        weights["alignment"],
        position,
    )
    return np.einsum("bts,bsd->btd", result, values), result


def differences(function, *arguments, step=1e-6):
    """The gradients of a scalar function for each of its arguments, by central differences."""
    arguments = [np.asarray(argument, "float64") for argument in arguments]
    gradients = [np.zeros_like(argument) for argument in arguments]
    for i, gradient in enumerate(gradients):
        for index in np.ndindex(*gradient.shape):
            move = np.zeros_like(gradient)
            move[index] = step
            before, after = (
                function(*arguments[:i], arguments[i] + way * move, *arguments[i + 1 :])
                for way in (-1, 1)
            )
            gradient[index] = (after - before) / (2 * step)
    return gradients
