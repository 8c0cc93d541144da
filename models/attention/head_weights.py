"""The weights of several heads, from their queries and keys.

`align_heads` is the definition, for any score and any alignment. `softmax_weights`, and
`softmax_once` for one step, compute the same in fewer operations for the pair of every
Transformer, scaled dot products and a softmax. `test_the_standard_pair_equals_the_general_way`
compares them (`tests/models/attention/test_multi_head.py`).
"""

from typing import Any

from keras import ops

from regard.models.attention.alignments import Alignment
from regard.models.attention.base import mask_bias
from regard.models.attention.relative import RelativePositions, distances
from regard.models.attention.scores import Score
from regard.models.tensors import Tensor


def align_heads(
    score: Score,
    alignment: Alignment,
    query: Tensor,
    keys: Tensor,
    mask: Tensor,
    pairs: Tensor = None,
    position: Tensor = None,
    training: bool = False,
    random_key: Tensor = None,
) -> tuple[Tensor, Tensor]:
    """Apply any score and alignment; every head is a separate row for the alignment.

    Args:
        score: the score.
        alignment: the alignment.
        query: ``[batch, heads, target, depth]``.
        keys: the prepared keys of the score.
        mask: ``[batch, source]``, or None.
        pairs: true where a target may attend to a source, ``[batch, 1 or target, source]``, or
            ``[target, source]`` for a causal mask; or None.
        position: the decoder step of each query, ``[batch or 1, target]``; the default is
            0, 1, 2, ...
        training: as in ``MultiHeadAttention.call``.
        random_key: the seed of sampled weights, or None.

    Returns:
        The weights and their distribution, ``[batch, heads, target, source]``.
    """
    scores = score.match(query, keys)
    heads, depth = query.shape[1], query.shape[-1]
    batch, _, target, source = ops.shape(scores)
    valid = ops.ones((batch, source), dtype="bool") if mask is None else mask
    valid = score.valid_mask(valid)[:, None, :]
    if pairs is not None:
        valid = ops.logical_and(valid, pairs)
    if position is None:
        position = ops.arange(target)[None]
    position = ops.broadcast_to(position, (batch, target))
    both = alignment.align_with_distribution(
        ops.reshape(scores, (batch * heads, target, source)),
        mask=ops.repeat(valid, heads, axis=0),
        query=ops.reshape(query, (-1, target, depth)),
        position=ops.repeat(position, heads, axis=0),
        training=training,
        random_key=random_key,
    )
    weights, distribution = (ops.reshape(x, (batch, heads, target, source)) for x in both)
    return weights, distribution


def softmax_weights(
    query: Tensor, keys: Tensor, mask: Tensor, pairs: Tensor, relative: RelativePositions | None
) -> Any:
    """Return the softmax of the scaled dot products, computed in float32.

    A bias hides masked positions, instead of the masked softmax of any alignment, and broadcasts
    over the heads, instead of a mask per head. Where a mask hides the whole source the weights are
    not 0; `MultiHeadAttention` sets them to 0 after their use.

    Args:
        query: ``[batch, heads, target, depth]``.
        keys: ``[batch, heads, source, depth]``.
        mask: as in ``align_heads``.
        pairs: as in ``align_heads``.
        relative: the relative positions, or None.
    """
    scores = ops.matmul(query * query.shape[-1] ** -0.5, ops.swapaxes(keys, -1, -2))
    scores = ops.cast(scores, "float32")
    if relative is not None:
        scores = scores + relative.scores(query, distances(scores))
    if mask is not None:
        scores = scores + mask_bias(mask)[:, None, None]
    if pairs is None:
        return ops.cast(ops.softmax(scores, axis=-1), query.dtype)
    is_causal = len(pairs.shape) == 2
    pairs = pairs if is_causal else pairs[:, None]
    weights = ops.softmax(scores + mask_bias(pairs), axis=-1)
    if mask is not None or not is_causal:  # a row that is hidden completely has equal scores
        weights = weights * ops.cast(pairs, "float32")
    return ops.cast(weights, query.dtype)


def softmax_once(query: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
    """Return the same for one step, with a bias, in the order of operations that TensorFlow fuses.

    Args:
        query: ``[batch, heads, hypotheses, depth]``.
        keys: ``[batch, heads, source, depth]``.
        bias: added to the scores.
    """
    scores = ops.matmul(query, ops.swapaxes(keys, -1, -2)) * query.shape[-1] ** -0.5
    weights = ops.softmax(ops.cast(scores, "float32") + bias, axis=-1)
    return ops.cast(weights, query.dtype)
