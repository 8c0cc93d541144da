"""What the attention layers share: masks, checks of shapes, and the choice of outputs."""

from functools import cache, reduce
from typing import Any

import keras
from keras import ops

from regard.models.serialization import ConfiguredLayer, check_name
from regard.models.tensors import Tensor

# Added to a score that must not count.
MASK_BIAS = -1e9
VALUES = ("shared", "split")
_SHAPES = {
    "query": "[batch, target, depth]",
    "memory": "[batch, source, depth]",
    "values": "[batch, source, depth]",
    "mask": "[batch, source] or [batch, target, source]",
    "query_mask": "[batch, target]",
    "memory_mask": "[batch, source]",
    "values_mask": "[batch, source]",
    "choices": "[batch, target, source]",
}
# What the arguments of Keras's attention layers are called here.
_KERAS_ARGUMENTS = {
    "num_heads": "heads of MultiHeadAttention",
    "key_dim": "width of MultiHeadAttention, the depth of all heads: num_heads * key_dim",
    "value_dim": "width of MultiHeadAttention, the depth of all heads: num_heads * value_dim",
    "score_mode": "score",
    "use_scale": "score='scaled_dot', which divides by the root of the depth",
    "value": "memory, the second argument, which has the keys and the values",
    "key": "memory for the keys, and values for the values",
    "attention_mask": "mask",
    "value_mask": "memory_mask",
    "key_mask": "memory_mask",
    "use_causal_mask": "causal of MultiHeadAttention",
    "return_attention_scores": "return_weights, which is true by default",
}


class AttentionLayer(ConfiguredLayer):
    """Base class of layers that are called with a query and a memory.

    ``call`` has the arguments ``query_mask``, ``memory_mask`` and ``values_mask``, which Keras
    sets to the masks that its layers attach to the inputs. The first output has the query's mask.
    """

    has_split_values = False
    _query_mask: Tensor = None

    def _how_to_build(self) -> str:
        return "Call build(query_shape, memory_shape) first."

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Create the layer, and explain arguments of ``keras.layers``."""
        _refuse_keras_arguments(cls, args, kwargs)
        return super().__new__(cls, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the layer, and explain arguments of ``keras.layers``."""
        _refuse_keras_arguments(type(self), args, kwargs)
        return super().__call__(*args, **kwargs)

    def keys_and_values(self, memory: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the scores and what the weights apply to.

        Args:
            memory: ``[batch, source, depth]``.
            values: ``[batch, source, value_depth]``; None for those of the memory.
        """
        check_shapes(memory=memory, values=values)
        if values is not None:
            return memory, values
        if not self.has_split_values:
            return memory, memory
        keys, values = ops.split(memory, [int(memory.shape[-1]) // 2], axis=-1)
        return keys, values

    def compute_mask(self, inputs: Tensor, previous_mask: Any) -> Any:
        """Return the mask of the query in the last call; Keras calls this after every call."""
        # `previous_mask` may be the argument `mask`, which belongs to the memory. Keras traces
        # symbolic calls with other tensors than those that it passed.
        mask, self._query_mask = self._query_mask, None
        is_symbolic = isinstance(inputs, keras.KerasTensor)
        return [getattr(inputs, "_keras_mask", None) if is_symbolic else mask]


def _refuse_keras_arguments(layer: type, arguments: tuple[Any, ...], names: Any) -> None:
    """Raise an error that names our argument for one of Keras's attention layers.

    Raises:
        TypeError: an argument is one of those, or the first one is a list of tensors.
    """
    for name in names:
        if name in _KERAS_ARGUMENTS:
            ours = _KERAS_ARGUMENTS[name]
            raise TypeError(f"{layer.__name__} has no argument {name}. Use {ours}.")
    if arguments and isinstance(arguments[0], list | tuple):
        raise TypeError(
            f"{layer.__name__} takes no list of tensors. Create the layer, and call it with a "
            f"query and a memory: {layer.__name__}(...)(query, memory)."
        )


def resolve_training(training: bool | None) -> bool:
    """Return ``training``; for None that of the layer whose ``call`` is running, as Keras does.

    Keras passes its training mode to the calls of layers only, not to their other methods.
    """
    return bool(_training_reader()()) if training is None else training


class _TrainingReader(keras.layers.Layer):
    """Returns the training mode that Keras passes to a layer without inputs."""

    def call(self, training: bool = False) -> bool:
        return training


@cache
def _training_reader() -> keras.layers.Layer:
    return _TrainingReader(name="training_reader")


def check_shapes(**tensors: Tensor) -> None:
    """Check the ranks of arguments by their names, and the sizes that they share.

    A query without the axis ``target`` would otherwise attend to all rows of the batch, and a
    mask ``[target, source]``, or a memory of one row, would be applied to every row.

    Args:
        tensors: the arguments by name; None is a missing argument. Sizes that are only known at
            run time are not compared.

    Raises:
        ValueError: an argument is a list, has another rank, or has another number of rows, queries
            or positions than the arguments before it.
    """
    sizes: dict[str, tuple[int, str]] = {}
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        layouts = [layout.strip("[]").split(", ") for layout in _SHAPES[name].split(" or ")]
        if isinstance(tensor, (list, tuple)):
            raise ValueError(
                f"{name} must be one tensor {_SHAPES[name]}, not a {type(tensor).__name__}. "
                "Combine several masks with keras.ops.logical_and."
            )
        shape = tuple(tensor.shape)
        axes = next((layout for layout in layouts if len(layout) == len(shape)), None)
        if axes is None:
            raise ValueError(f"{name} must be {_SHAPES[name]}, but its shape is {shape}.")
        for axis, size in zip(axes, shape, strict=True):
            # Unknown sizes are None with TensorFlow and symbols with JAX.
            if axis == "depth" or not isinstance(size, int):
                continue
            expected, other = sizes.setdefault(axis, (size, name))
            if size != expected:
                raise ValueError(
                    f"{name} must be {_SHAPES[name]}, where {axis} is {expected} as in {other}, "
                    f"but its shape is {shape}."
                )


def combine_masks(*masks: Tensor, memory: Tensor, query_mask: Tensor = None) -> Tensor:
    """Return where all masks allow attention, or None without a mask.

    Args:
        masks: each ``[batch, source]``, ``[batch or 1, target, source]`` or None.
        memory: ``[batch, source, depth]``, whose positions the result has.
        query_mask: ``[batch, target]``, or None.

    Returns:
        ``[batch, source]``, or ``[batch, target, source]`` if a mask depends on the query.
    """
    present = [ops.cast(mask, "bool") for mask in masks if mask is not None]
    if query_mask is not None:
        if not present:
            present.append(ops.ones(ops.shape(memory)[:2], dtype="bool"))
        present.append(ops.cast(query_mask, "bool")[:, :, None])
    if any(len(mask.shape) == 3 for mask in present):
        present = [mask if len(mask.shape) == 3 else mask[:, None] for mask in present]
    return reduce(ops.logical_and, present) if present else None


def split_depths(depth: int) -> tuple[int, int]:
    """Return the depths of keys and values of a memory that is split into both.

    Raises:
        ValueError: the depth is below 2.
    """
    if depth < 2:
        raise ValueError(f"A memory to split into keys and values needs a depth of 2, not {depth}.")
    return depth // 2, depth - depth // 2


def is_split(values: str) -> bool:
    """Return whether the setting ``values`` splits a memory into keys and values.

    Raises:
        ValueError: the setting is unknown.
    """
    check_name("values", VALUES, values)
    return values == "split"


def mask_bias(mask: Tensor) -> Any:
    """Return what hides positions when it is added to their scores, of the mask's shape."""
    return ops.where(mask, 0.0, MASK_BIAS)


def causal_mask(query: Tensor, memory: Tensor) -> Any:
    """Return where the source is not after the target, ``[target, source]``."""
    target, source = (ops.arange(ops.shape(x)[1]) for x in (query, memory))
    return target[:, None] >= source[None]


def select_outputs(*outputs: tuple[Tensor, bool]) -> Any:
    """Return the requested outputs: one tensor, or a tuple.

    Args:
        outputs: each output, and whether it is requested.

    Raises:
        ValueError: none is requested.
    """
    selected = tuple(output for output, is_requested in outputs if is_requested)
    if not selected:
        raise ValueError("An attention layer must return something: set one return_… to true.")
    return selected if len(selected) > 1 else selected[0]
