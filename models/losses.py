"""The loss of sequence models, a mean over the real target pieces."""

from __future__ import annotations

from typing import Any

from keras import ops


def token_losses(logits: Any, targets: Any, smoothing: float = 0.0) -> tuple[Any, Any]:
    """The loss of every piece, smoothed for training and plain for perplexity.

    Label smoothing spreads ``smoothing`` evenly over the vocabulary (Szegedy et al. 2016, §7;
    Vaswani et al. 2017, §5.4) without ever building the one-hot targets.

    Shapes: logits ``[batch, target, vocabulary]``, targets ``[batch, target]`` → two tensors
    ``[batch, target]`` in nats, float32. The size of the vocabulary may be known only at run
    time.
    """
    targets = ops.cast(targets, "int32")[..., None]
    pieces = ops.shape(logits)[-1]
    even = smoothing / ops.cast(pieces, "float32") if smoothing else 0.0

    # The logits are the largest tensor of a model. Derived operation by operation they are read
    # and written a dozen times; the gradient is known: the softmax minus the targets.
    @ops.custom_gradient
    def losses(logits: Any) -> tuple[Any, Any]:
        wide = ops.cast(logits, "float32")
        peak = ops.max(wide, axis=-1, keepdims=True)
        odds = ops.exp(wide - peak)
        total = ops.sum(odds, axis=-1, keepdims=True)
        normaliser = (ops.log(total) + peak)[..., 0]
        plain = normaliser - ops.take_along_axis(wide, targets, axis=-1)[..., 0]
        uniform = normaliser - ops.mean(wide, axis=-1) if smoothing else plain
        both = ops.stack([(1.0 - smoothing) * plain + smoothing * uniform, plain], axis=-1)

        def gradient(*args: Any, upstream: Any = None) -> Any:
            (upstream,) = args or (upstream,)
            smoothed, plain = upstream[..., :1], upstream[..., 1:]
            here = ops.equal(ops.arange(pieces, dtype="int32"), targets)
            wanted = ops.where(here, (1.0 - smoothing) * smoothed + plain, 0.0) + even * smoothed
            return ops.cast(odds * ((smoothed + plain) / total) - wanted, logits.dtype)

        return both, gradient

    both = losses(logits)
    return both[..., 0], both[..., 1]
