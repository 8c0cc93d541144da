"""Several encoders, each of which reads the memory of the one before."""

from collections.abc import Sequence
from typing import Any

from regard.models.encoders.embedding import EmbeddingEncoder
from regard.models.encoders.recurrent import RecurrentEncoder
from regard.models.encoders.text_convolution import TextConvolutionEncoder
from regard.models.encoders.transformer import TransformerEncoder
from regard.models.serialization import ConfiguredLayer, constructor_arguments, register, spec
from regard.models.tensors import Memory, Tensor

ENCODERS = {
    "convolutional": TextConvolutionEncoder,
    "embedding": EmbeddingEncoder,
    "recurrent": RecurrentEncoder,
    "transformer": TransformerEncoder,
}


@register
class EncoderStack(ConfiguredLayer):
    """A stack of encoders, for example self-attention over the states of a recurrent encoder.

    Args:
        vocabulary: the size of the source vocabulary, as in ``source_embedding``.
        encoders: the encoders from the first to the last, ``{"type": name, **options}`` with a
            name in ``ENCODERS``. Each has the width of the outputs before it as ``embedding``.
        embedding: the depth of the embeddings.
        dropout: the dropout rate of all encoders.
        scale: multiply the embeddings by the square root of their depth.
        dimensions: the number of coordinates of a point.

    Shapes: ids ``[batch, source]`` → the memory of the last encoder, with the ``final_states`` of
    the last one that has some.

    Attributes:
        depth: the depth of the memory.
        final_depth: the depth of each tensor of ``final_states``; 0 if there are none.
        head_names: the names of the attention weights of all heads, for ``Seq2Seq.heads``.

    Raises:
        ValueError: an encoder is unknown or has invalid options.
    """

    def __init__(
        self,
        vocabulary: int | None,
        encoders: Sequence[dict[str, Any]],
        embedding: int = 256,
        dropout: float = 0.0,
        scale: bool = True,
        dimensions: int = 2,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        encoders = [dict(options) for options in encoders]
        self.settings = constructor_arguments(locals())
        self.encoders: list[Any] = []
        for i, options in enumerate(encoders):
            encoder = spec(
                "encoder",
                ENCODERS,
                options,
                vocabulary=0 if i else vocabulary,
                embedding=embedding,
                dropout=dropout,
                scale=scale,
                dimensions=dimensions,
                name=f"encoder_{i}",
                dtype=self.dtype_policy,
            )
            self.encoders.append(encoder)
            embedding = encoder.depth
        self.depth = embedding
        self.embedding = self.encoders[0].embedding
        finals = [encoder.final_depth for encoder in self.encoders if encoder.final_depth]
        self.final_depth = finals[-1] if finals else 0
        transformers = [encoder for encoder in self.encoders if hasattr(encoder, "head_names")]
        self.head_names = transformers[-1].head_names if transformers else ()

    def build(self, ids_shape: Any = None) -> None:
        for encoder in self.encoders:
            encoder.build()

    def call(self, ids: Tensor, training: bool = False) -> Memory:
        return self.encode_with_attention(ids, training)[0]

    def encode_with_attention(self, ids: Tensor, training: bool = False) -> tuple[Memory, Tensor]:
        """Return the memory, and the attention of all heads of the last Transformer, or None."""
        inputs, weights = ids, None
        finals: dict[str, Any] = {}
        for encoder in self.encoders:
            if hasattr(encoder, "head_names"):
                inputs, weights = encoder.encode_with_attention(inputs, training)
            else:
                inputs = encoder(inputs, training=training)
            finals = {"final_states": inputs["final_states"]} if encoder.final_depth else finals
        return {**inputs, **finals}, weights


def create_encoder(section: Any, vocabulary: int | None, **options: Any) -> Any:
    """Return the encoder of a section ``model.encoder``, or of a list of them.

    Args:
        section: one section with the key ``type``, or several.
        vocabulary: the size of the source vocabulary, as in ``source_embedding``.
        options: the other arguments of all encoders.

    Raises:
        ValueError: an option is invalid.
    """
    if isinstance(section, Sequence):
        parts = [part.model_dump(mode="json") for part in section]
        return EncoderStack(vocabulary, parts, **options)
    return ENCODERS[section.type](vocabulary, **options, **section.to_kwargs())
