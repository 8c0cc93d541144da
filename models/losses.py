"""The losses of sequence models, and penalties on attention weights."""

from collections.abc import Callable, Mapping
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


def token_losses(
    logits: Tensor, targets: Tensor, smoothing: float = 0.0, vocabulary: int | None = None
) -> TokenLosses:
    """Return the loss of every token, smoothed for training and plain for perplexity.

    Label smoothing spreads ``smoothing`` evenly over the vocabulary (Szegedy et al. 2016, §7;
    Vaswani et al. 2017, §5.4); one-hot targets are never built. Of logits with an extended
    vocabulary, ``vocabulary`` is the size without the extension, which gets no share.

    Shapes: logits ``[batch, target, vocabulary]``, targets ``[batch, target]``. The size of the
    vocabulary may be known only at run time.
    """
    targets = ops.cast(targets, "int32")
    columns = ops.shape(logits)[-1]
    is_regular: Any = 1.0  # a vector would cost a pass over the logits
    if vocabulary is not None:
        is_regular = ops.cast(ops.arange(columns) < vocabulary, "float32")
    vocabulary = columns if vocabulary is None else vocabulary
    uniform_share = smoothing / ops.cast(vocabulary, "float32") * is_regular

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
        uniform = normalizer - ops.mean(wide[..., :vocabulary], axis=-1) if smoothing else plain
        correct = ops.cast(target_logits >= peak, "float32")
        smoothed = (1.0 - smoothing) * plain + smoothing * uniform
        outputs = ops.stack([smoothed, plain, correct], axis=-1)

        def gradient(*args: Tensor, upstream: Tensor = None) -> Tensor:
            # PyTorch passes the arguments of the function first, and `upstream` by name.
            upstream = args[0] if upstream is None else upstream
            smoothed, plain = upstream[..., :1], upstream[..., 1:2]
            grads = probs * (smoothed + plain)
            if smoothing:
                grads = grads - smoothed * uniform_share
            # A scatter touches one number per token; a mask would touch the whole vocabulary.
            rows = ops.reshape(grads, (-1, columns))
            ids = ops.reshape(targets, (-1,))
            indices = ops.stack([ops.arange(ops.shape(rows)[0]), ids], axis=-1)
            target_grads = ops.reshape((1.0 - smoothing) * smoothed + plain, (-1,))
            rows = ops.scatter_update(rows, indices, -target_grads, reduction="add")
            return ops.cast(ops.reshape(rows, ops.shape(grads)), logits.dtype)

        return outputs, gradient

    outputs = losses(logits)
    return TokenLosses(outputs[..., 0], outputs[..., 1], outputs[..., 2])


def doubly_stochastic(alignment: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
    """Return Σ_i (1 - Σ_t a_ti)²: each source position should get a total weight of 1.

    Xu et al. 2015, "Show, Attend and Tell", §4.2.1 (eq. 14).

    Shapes: alignment ``[batch, target, source]``, source_mask ``[batch, source]``, target_mask
    ``[batch, target]``, 1 at tokens and 0 at padding → ``[batch]``, float32.
    """
    totals = ops.sum(ops.cast(alignment, "float32") * target_mask[..., None], axis=1)
    return ops.sum(ops.square(1.0 - totals) * ops.cast(source_mask, "float32"), axis=-1)


def coverage(alignment: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
    """Return Σ_t Σ_i min(a_ti, c_ti), where c_ti is the previous total weight of position i.

    See et al. 2017, "Get To The Point: Summarization with Pointer-Generator Networks", §2.3
    (eq. 12). Shapes as in ``doubly_stochastic``.
    """
    weights = ops.cast(alignment, "float32") * target_mask[..., None]
    previous = ops.cumsum(weights, axis=1) - weights
    return ops.sum(ops.minimum(weights, previous), axis=(1, 2))


def guided_alignment(alignment: Tensor, links: Tensor, target_mask: Tensor) -> Tensor:
    """Return the cross-entropy of attention weights with given links, per target token in nats.

    Chen et al. 2016, "Guided Alignment Training for Topic-Aware Neural Machine Translation", §3.1;
    Garg et al. 2019, "Jointly Learning to Align and Translate with Transformer Models", §4.2. The
    source tokens that a target token is linked to share its weight equally. Tokens without a link
    add nothing.

    Shapes: alignment ``[batch, target, source]``, links the same, 1 at links and else 0,
    target_mask ``[batch, target]`` → a scalar, float32.
    """
    links = ops.cast(links, "float32")
    gold = links / ops.maximum(ops.sum(links, axis=-1, keepdims=True), 1.0)
    log_weights = ops.log(ops.maximum(ops.cast(alignment, "float32"), 1e-9))
    losses = -ops.sum(gold * log_weights, axis=-1)
    return ops.sum(losses * target_mask) / ops.maximum(ops.sum(target_mask), 1.0)


PENALTIES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "doubly_stochastic": doubly_stochastic,
    "coverage": coverage,
}


def penalty(
    weights: Mapping[str, float], alignment: Tensor, source_mask: Tensor, target_mask: Tensor
) -> Tensor:
    """Return the weighted sum of penalties per target token, like the loss."""
    total = sum(
        weight * ops.sum(PENALTIES[name](alignment, source_mask, target_mask))
        for name, weight in weights.items()
    )
    return total / ops.maximum(ops.sum(target_mask), 1.0)
