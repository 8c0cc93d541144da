"""The loss of sequence models, a mean over the real target pieces."""

from __future__ import annotations

from typing import Any

from keras import ops


def token_losses(logits: Any, targets: Any, smoothing: float = 0.0) -> tuple[Any, Any]:
    """The loss of every piece, smoothed for training and plain for perplexity.

    Label smoothing spreads ``smoothing`` evenly over the vocabulary (Szegedy et al. 2016, §7;
    Vaswani et al. 2017, §5.4) without ever building the one-hot targets.

    Shapes: logits ``[batch, target, vocabulary]``, targets ``[batch, target]`` → two tensors
    ``[batch, target]`` in nats, float32.
    """
    logits = ops.cast(logits, "float32")
    normaliser = ops.logsumexp(logits, axis=-1)
    chosen = ops.take_along_axis(logits, ops.cast(targets, "int32")[..., None], axis=-1)[..., 0]
    plain = normaliser - chosen
    if not smoothing:
        return plain, plain
    uniform = normaliser - ops.mean(logits, axis=-1)
    return (1.0 - smoothing) * plain + smoothing * uniform, plain
