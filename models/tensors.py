"""Type aliases for tensors of any Keras backend, which share no base class."""

from typing import Any, TypeAlias

Tensor: TypeAlias = Any
# The output of an encoder: at least ``values`` [batch, source, depth] and ``mask`` [batch, source].
Memory: TypeAlias = dict[str, Tensor]
# Tensors by name, possibly nested, which a decoder or a layer carries from step to step.
State: TypeAlias = dict[str, Tensor]
