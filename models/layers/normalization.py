"""Layer normalization with an explicit gradient."""

from typing import Any

import keras
from keras import ops

from regard.models.serialization import register
from regard.models.tensors import Tensor


@register
class LayerNormalization(keras.layers.LayerNormalization):
    """Keras's layer normalization with a faster gradient.

    One core, float32, [2048, 128] with its gradient: 2.8 ms, Keras's layer 4.2 ms (28 November
    2026). To be deleted when Keras's layer is as fast, or the difference is under 3% of a training.

    Ba et al. 2016, "Layer Normalization", §3. Automatic differentiation reads and writes a tensor
    of the inputs' size about 20 times, the explicit gradient 10 times. Other axes than the last,
    ``rms_scaling`` and layers without scale or center have Keras's gradient.

    Shapes: ``[..., depth]`` → ``[..., depth]``, computed in float32.
    """

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        is_last = self.axis in ([-1], [len(inputs.shape) - 1])
        is_standard = is_last and self.scale and self.center and not self.rms_scaling
        # An exported model needs no gradient.
        return self._with_gradient(inputs) if training and is_standard else super().call(inputs)

    def _with_gradient(self, inputs: Tensor) -> Tensor:
        @ops.custom_gradient
        def normalize(inputs: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Any]:
            wide = ops.cast(inputs, "float32")
            centered = wide - ops.mean(wide, axis=-1, keepdims=True)
            variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
            inverse_std = ops.rsqrt(variance + self.epsilon)
            normalized = centered * inverse_std

            def gradient(*args: Tensor, upstream: Tensor = None) -> tuple[Tensor, Tensor, Tensor]:
                # PyTorch passes the arguments of the function first, and `upstream` by name.
                upstream = args[0] if upstream is None else upstream
                upstream = ops.cast(upstream, "float32")
                scaled, gamma_terms = upstream * gamma, upstream * normalized
                mean = ops.mean(scaled, axis=-1, keepdims=True)
                slope = ops.mean(scaled * normalized, axis=-1, keepdims=True)
                input_grad = (scaled - mean - normalized * slope) * inverse_std
                rows = (-1, ops.shape(gamma)[0])
                gamma_grad = ops.sum(ops.reshape(gamma_terms, rows), axis=0)
                beta_grad = ops.sum(ops.reshape(upstream, rows), axis=0)
                return ops.cast(input_grad, inputs.dtype), gamma_grad, beta_grad

            return ops.cast(normalized * gamma + beta, self.compute_dtype), gradient

        # Tensors: the custom gradient must not capture variables.
        weights = (ops.cast(weight, "float32") for weight in (self.gamma, self.beta))
        return normalize(inputs, *weights)
