"""The losses of sequence models."""

from __future__ import annotations

from typing import Any, NamedTuple

from keras import ops

from regard.models.tensors import Tensor


class TokenLosses(NamedTuple):
    """The losses of every token, ``[batch, target]``, float32.

    Attributes:
        smoothed: the training loss with label smoothing, in nats.
        plain: the negative log-probability, in nats.
        correct: 1 if no other token is more probable, else 0.
    """

    smoothed: Tensor
    plain: Tensor
    correct: Tensor


def token_losses(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> TokenLosses:
    """Return the loss of every token, smoothed for training and plain for perplexity.

    Label smoothing spreads ``smoothing`` evenly over the vocabulary (Szegedy et al. 2016, §7;
    Vaswani et al. 2017, §5.4); one-hot targets are never built.

    Shapes: logits ``[batch, target, vocabulary]``, targets ``[batch, target]``. The size of the
    vocabulary may be known only at run time.
    """
    targets = ops.cast(targets, "int32")
    vocabulary = ops.shape(logits)[-1]
    uniform_share = smoothing / ops.cast(vocabulary, "float32") if smoothing else 0.0

    # The logits are the largest tensor of a model. Automatic differentiation would read and write
    # them a dozen times; the gradient is simply the softmax minus the targets.
    @ops.custom_gradient
    def losses(logits: Tensor) -> tuple[Tensor, Any]:
        wide = ops.cast(logits, "float32")
        probs = ops.softmax(wide, axis=-1)
        peak = ops.max(wide, axis=-1)
        # The largest probability is at least 1 / vocabulary, so its logarithm is exact.
        normalizer = peak - ops.log(ops.max(probs, axis=-1))
        target_logits = ops.take_along_axis(wide, targets[..., None], axis=-1)[..., 0]
        plain = normalizer - target_logits
        uniform = normalizer - ops.mean(wide, axis=-1) if smoothing else plain
        correct = ops.cast(target_logits >= peak, "float32")
        smoothed = (1.0 - smoothing) * plain + smoothing * uniform
        outputs = ops.stack([smoothed, plain, correct], axis=-1)

        def gradient(*args: Tensor, upstream: Tensor = None) -> Tensor:
            (upstream,) = args or (upstream,)
            smoothed, plain = upstream[..., :1], upstream[..., 1:2]
            grads = probs * (smoothed + plain)
            if smoothing:
                grads = grads - uniform_share * smoothed
            # A scatter touches one number per token; a mask would touch the whole vocabulary.
            rows = ops.reshape(grads, (-1, vocabulary))
            ids = ops.reshape(targets, (-1,))
            indices = ops.stack([ops.arange(ops.shape(rows)[0]), ids], axis=-1)
            target_grads = ops.reshape((1.0 - smoothing) * smoothed + plain, (-1,))
            rows = ops.scatter_update(rows, indices, -target_grads, reduction="add")
            return ops.cast(ops.reshape(rows, ops.shape(grads)), logits.dtype)

        return outputs, gradient

    outputs = losses(logits)
    return TokenLosses(outputs[..., 0], outputs[..., 1], outputs[..., 2])
