"""The formulas of `reference` in float64 for batches, and for the weights of layers."""

import numpy as np

from tests.models.attention import reference


def number(name, q, k, s, weights):
    """The score of one query vector with one key vector at source position ``s``."""
    if name == "additive":
        W, U, b, z, *layers = weights
        # With the identity as z the formula returns the hidden layer.
        first = reference.additive(q, k, W.T, U.T, b, np.eye(len(b)))
        return reference.deep(first, pairs(layers), z[:, 0])
    if name == "concat":
        W, z, *layers = weights
        first = reference.concat(q, k, W.T, np.eye(len(z)))
        return reference.deep(first, pairs(layers), z[:, 0])
    if name == "cosine":
        return reference.cosine(q, k, *weights)
    if name == "location":
        return reference.location(q, s, weights[0].T)
    products = {
        "dot": reference.dot,
        "scaled_dot": reference.scaled_dot,
        "general": reference.general,
        "low_rank": reference.low_rank,
    }
    kernels = [kernel.T for kernel in weights]
    return products[name](q, k, *kernels)


def pairs(weights):
    """The matrices and biases of layers."""
    return [(kernel.T, bias) for kernel, bias in zip(weights[::2], weights[1::2], strict=True)]


def scores(name, query, keys, weights):
    """``[batch, target, source]``."""
    weights = [np.asarray(w, "float64") for w in weights]
    query, keys = np.asarray(query, "float64"), np.asarray(keys, "float64")
    result = np.zeros((query.shape[0], query.shape[1], keys.shape[1]))
    for b, t, s in np.ndindex(*result.shape):
        result[b, t, s] = number(name, query[b, t], keys[b, s], s, weights)
    return result


def align(name, e, q, t, options, weights):
    """The weights of one step: scores of the true source positions, query vector, step."""
    if not len(e):
        return e
    if name == "local_m":
        return reference.local_m(e, t, options["window"])
    if name == "local_p":
        W_p, v_p = (np.asarray(w, "float64").T for w in weights)
        return reference.local_p(e, q, options["window"], W_p, v_p[0])
    if name == "top_k":
        return reference.top_k(e, options["k"])
    if name == "thresholded":
        return reference.thresholded(e, options.get("threshold", 0.05))
    alignments = {
        "soft": reference.softmax,
        "hard": reference.hard,
        "sparsemax": reference.sparsemax,
    }
    return alignments[name](e)


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
        weights[part] = [np.asarray(w, "float64") for w in getattr(layer, part).trainable_weights]
    query, memory = np.asarray(query, "float64"), np.asarray(memory, "float64")
    keys, values = memory, memory
    if layer.settings["values"] == "split":
        keys, values = np.split(memory, [memory.shape[-1] // 2], axis=-1)
    if names["score"] == "location":
        source_lengths = np.minimum(source_lengths, options["score"]["max_source"])
    contexts = np.zeros((*query.shape[:2], values.shape[-1]))
    result = np.zeros((*query.shape[:2], memory.shape[1]))
    for b, t in np.ndindex(*query.shape[:2]):
        length, step = source_lengths[b], t if position is None else position[b, t]

        # The score of a location depends on the position, so positions stand for the keys.
        def score(q, s, b=b):
            return number(names["score"], q, keys[b, s], s, weights["score"])

        def align_step(e, q=query[b, t], step=step):
            return align(names["alignment"], e, q, step, options["alignment"], weights["alignment"])

        contexts[b, t], result[b, t, :length] = reference.attend(
            query[b, t], range(length), values[b, :length], score, align_step
        )
    return contexts, result


def multi_head(weights, heads, query, memory):
    """Output ``[width]`` and weights ``[heads, source]`` of a query, with weights by their names.

    Regard's projections have a bias, which the paper omits: it is the last column of a matrix, for
    vectors that end with 1.
    """
    if "project/kernel" in weights:
        projections = np.split(_with_bias(weights, "project"), 3)
    else:
        shared = np.split(_with_bias(weights, "project_memory"), 2)
        projections = [_with_bias(weights, "project_query"), *shared]
    W_Q, W_K, W_V = (np.split(W, heads) for W in projections)
    q, K = np.append(query, 1), np.hstack([memory, np.ones((len(memory), 1))])
    c, a = reference.multi_head(q, K, K, W_Q, W_K, W_V, weights["output/kernel"].T)
    return c + weights["output/bias"], np.array(a)


def _with_bias(weights, name):
    return np.vstack([weights[f"{name}/kernel"], weights[f"{name}/bias"]]).T


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
