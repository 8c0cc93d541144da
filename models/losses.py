"""The loss of sequence models, a mean over the real target pieces."""

from __future__ import annotations

from typing import Any, NamedTuple

from keras import ops


class TokenLosses(NamedTuple):
    """What is known of every piece, ``[batch, target]``, float32.

    Attributes:
        smoothed: the loss to train by, in nats.
        plain: minus the logarithm of its probability, in nats.
        hit: 1 where no other piece was more probable, else 0.
    """

    smoothed: Any
    plain: Any
    hit: Any


def token_losses(logits: Any, targets: Any, smoothing: float = 0.0) -> TokenLosses:
    """The loss of every piece, smoothed for training and plain for perplexity.

    Label smoothing spreads ``smoothing`` evenly over the vocabulary (Szegedy et al. 2016, §7;
    Vaswani et al. 2017, §5.4) without ever building the one-hot targets.

    Shapes: logits ``[batch, target, vocabulary]``, targets ``[batch, target]``. The size of the
    vocabulary may be known only at run time.
    """
    targets = ops.cast(targets, "int32")
    pieces = ops.shape(logits)[-1]
    even = smoothing / ops.cast(pieces, "float32") if smoothing else 0.0

    # The logits are the largest tensor of a model. Derived operation by operation they are read
    # and written a dozen times; the gradient is known: the softmax minus the targets.
    @ops.custom_gradient
    def losses(logits: Any) -> tuple[Any, Any]:
        wide = ops.cast(logits, "float32")
        odds = ops.softmax(wide, axis=-1)
        peak = ops.max(wide, axis=-1)
        # That of the most probable piece is 1 / vocabulary at least, so its logarithm is exact.
        normaliser = peak - ops.log(ops.max(odds, axis=-1))
        own = ops.take_along_axis(wide, targets[..., None], axis=-1)[..., 0]
        plain = normaliser - own
        uniform = normaliser - ops.mean(wide, axis=-1) if smoothing else plain
        hit = ops.cast(own >= peak, "float32")
        found = ops.stack([(1.0 - smoothing) * plain + smoothing * uniform, plain, hit], axis=-1)

        def gradient(*args: Any, upstream: Any = None) -> Any:
            (upstream,) = args or (upstream,)
            smoothed, plain = upstream[..., :1], upstream[..., 1:2]
            spread = odds * (smoothed + plain)
            if smoothing:
                spread = spread - even * smoothed
            # One number a row is left: with a mask of the targets it would be all of them again.
            rows = ops.reshape(spread, (-1, pieces))
            places = ops.reshape(targets, (-1,))
            places = ops.stack([ops.arange(ops.shape(rows)[0]), places], axis=-1)
            wanted = ops.reshape((1.0 - smoothing) * smoothed + plain, (-1,))
            rows = ops.scatter_update(rows, places, -wanted, reduction="add")
            return ops.cast(ops.reshape(rows, ops.shape(spread)), logits.dtype)

        return found, gradient

    found = losses(logits)
    return TokenLosses(found[..., 0], found[..., 1], found[..., 2])
