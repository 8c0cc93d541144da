"""The sections ``model.encoder``, ``model.decoder``, ``model.pooling`` and ``model.pretrained``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import Discriminator, Field, Tag
from typing_extensions import Self

from regard.core.bounds import Count, Rate, Size, VarianceOffset
from regard.models.settings.base import (
    ByType,
    Listed,
    Section,
    T,
    absolute,
    name_or_mapping,
)
from regard.models.settings.layer_options import LayerSection, any_of


class RecurrentLayersConfig(Section):
    """Options of recurrent encoders and decoders.

    Attributes:
        cell: Recurrent cell.
        units: Width of each layer, in each direction.
        layers: Number of layers.
        residual: Residual connections between layers of equal width.
    """

    cell: Literal["lstm", "gru", "rnn"] = "lstm"
    units: Size = 256
    layers: Size = 1
    residual: bool = False


TransformerPositions = Literal[
    "sinusoidal",
    "sinusoidal_marian",
    "sinusoidal_tensor2tensor",
    "learned",
    "rotary",
    "relative",
    "alibi",
    "none",
]


class PositionsConfig(Section):
    """Options of networks that can add positions to their embeddings.

    Attributes:
        positions: Position encoding.
        max_positions: Number of learned positions, for positions: learned.
        position_merge: How sinusoidal and learned positions join the embeddings. add: their sum;
            concat: a projection of both, concatenated.
    """

    positions: Literal["none", "sinusoidal", "learned"] = "none"
    max_positions: Size = 1024
    position_merge: Literal["add", "concat"] = "add"

    def width(self, inputs: int) -> int:
        """Return the width of the outputs from that of the inputs."""
        return inputs


class TransformerLayersConfig(PositionsConfig):
    """Options of Transformer encoders and decoders; their width is ``model.embedding``.

    Attributes:
        layers: Number of layers of this side.
        heads: Number of attention heads; must divide the width.
        feed_forward: Width of the feed-forward layer.
        norm: Layer normalization before each sub-layer, or after it (Vaswani 2017).
        norm_epsilon: Number added to the variance in layer normalization; 0.001 as in OpenNMT-tf,
            0.000001 as in JoeyNMT.
        positions: Position encoding. Sinusoidal ones exist in three forms (Vaswani 2017;
            Marian; tensor2tensor, fairseq and OpenNMT-tf).
        first_position: Number of the first position, for sinusoidal positions; 2 as in fairseq, 1
            as in OpenNMT-tf.
        max_distance: Distance from which all positions are equally far, for positions: relative.
        activation: Activation of the feed-forward layer; silu is also called swish.
        attention_dropout: Dropout rate of the attention weights.
        activation_dropout: Dropout rate inside the feed-forward layer.
    """

    layers: Size = 6
    heads: Size = 8
    feed_forward: Size = 1024
    norm: Literal["pre", "post"] = "pre"
    norm_epsilon: VarianceOffset = 1e-5
    positions: TransformerPositions = "sinusoidal"  # type: ignore[assignment]
    first_position: Count = 0
    max_distance: Size = 16
    activation: Literal["relu", "gelu", "silu", "swiglu"] = "relu"
    attention_dropout: Rate = 0.0
    activation_dropout: Rate = 0.0


class RecurrentEncoderConfig(RecurrentLayersConfig):
    """Recurrent layers (Bahdanau 2015, Luong 2015).

    Attributes:
        type: Encoder type.
        bidirectional: Read in both directions, which doubles the output width.
        reverse: Read the source from its end (Sutskever 2014).
    """

    type: Literal["recurrent"] = "recurrent"
    bidirectional: bool = True
    reverse: bool = False

    def width(self, inputs: int) -> int:
        """Return the width of the outputs from that of the inputs."""
        return self.units * (2 if self.bidirectional else 1)


class TransformerEncoderConfig(TransformerLayersConfig):
    """Self-attention layers (Vaswani 2017).

    Attributes:
        type: Encoder type.
        read_end: Whether the encoder, and the decoder's attention to it, read the token at the end
            of a source; false as in OpenNMT-tf.
    """

    type: Literal["transformer"] = "transformer"
    read_end: bool = True


class TextConvolutionEncoderConfig(PositionsConfig):
    """Gated convolutions with residual connections (Gehring 2017).

    Attributes:
        type: Encoder type.
        units: Width of each layer.
        layers: Number of layers.
        kernel_size: Number of neighbouring positions that a layer combines.
        pooling: Halve the length after every layer by the maximum of each pair of positions,
            without gates and residual connections (Rush 2015, section 3.2).
    """

    type: Literal["convolutional"] = "convolutional"
    units: Size = 256
    layers: Size = 4
    kernel_size: Size = 3
    pooling: bool = False

    def width(self, inputs: int) -> int:
        """Return the width of the outputs from that of the inputs."""
        return self.units


class EmbeddingEncoderConfig(PositionsConfig):
    """Token embeddings without further layers.

    Attributes:
        type: Encoder type.
    """

    type: Literal["embedding"] = "embedding"


EncoderConfig = Annotated[
    RecurrentEncoderConfig
    | TransformerEncoderConfig
    | TextConvolutionEncoderConfig
    | EmbeddingEncoderConfig,
    ByType("recurrent"),
]
# Each encoder of a list reads the outputs of the one before. Users do not see the tags: only the
# locations of pydantic's errors have them, ``encoder.[list].0.units``, and messages omit brackets.
OneOrList = Annotated[
    Annotated[T, Tag("[one]")] | Annotated[Listed[T], Tag("[list]")],
    Discriminator(lambda value: "[list]" if isinstance(value, list | tuple) else "[one]"),
]
EncodersConfig = OneOrList[EncoderConfig]


_POOLINGS = Path(__file__).parents[1] / "layers" / "pooling.py"


class PoolingSection(LayerSection, source=_POOLINGS):
    """A pooling. ``models/layers/pooling.py`` has the layers and their options.

    Attributes:
        type: Pooling type.
    """

    type: str


def _names_without_options() -> Iterator[str]:
    """Yield the poolings that need neither options nor the vector of another sentence."""
    for name, section in PoolingSection.variants.items():
        if section.model_fields.keys() == {"type"} and not section.needs_guide:
            yield name


if TYPE_CHECKING:
    PoolingConfig = PoolingSection
    PoolingName = str
else:
    PoolingConfig = Annotated[
        any_of(PoolingSection.variants.values()), ByType("max"), name_or_mapping
    ]
    PoolingName = Literal[tuple(_names_without_options())]


class _CopyingDecoderConfig(Section):
    """Options of decoders that can copy.

    Attributes:
        default_score: The score of the attention unless the section ``model.attention`` has one,
            that of the decoder's paper.
        pointer_generator: Copy source tokens in addition to generating tokens, also words that the
            vocabulary lacks (See 2017); needs tokenizer.shared.
    """

    default_score: ClassVar[str] = "general"
    pointer_generator: bool = False


class _RecurrentDecoderConfig(RecurrentLayersConfig, _CopyingDecoderConfig):
    """Options of recurrent decoders.

    Attributes:
        initial_state: encoder: initialize the decoder with the final states of the encoder, or with
            the mean of its outputs; zeros: attention is the only connection to the source.
    """

    initial_state: Literal["encoder", "zeros"] = "encoder"


class LuongDecoderConfig(_RecurrentDecoderConfig):
    """Attention after the recurrent layers (Luong 2015).

    Attributes:
        type: Decoder type.
        input_feeding: Feed the attentional state into the next step.
    """

    type: Literal["luong"] = "luong"
    input_feeding: bool = True


class BahdanauDecoderConfig(_RecurrentDecoderConfig):
    """Attention before the recurrent layers (Bahdanau 2015).

    Attributes:
        type: Decoder type.
        readout: Layer before the softmax.
    """

    default_score: ClassVar[str] = "additive"
    type: Literal["bahdanau"] = "bahdanau"
    readout: Literal["maxout", "tanh"] = "maxout"


class TransformerDecoderConfig(TransformerLayersConfig, _CopyingDecoderConfig):
    """Self-attention and cross-attention in every layer (Vaswani 2017).

    Attributes:
        type: Decoder type.
    """

    default_score: ClassVar[str] = "scaled_dot"
    type: Literal["transformer"] = "transformer"


class FeedForwardDecoderConfig(_CopyingDecoderConfig):
    """Neural language model of the last tokens and of the source (Rush 2015, section 3).

    Attributes:
        type: Decoder type.
        units: Width of the hidden layer.
        context_size: Number of previous tokens that a token depends on.
        smoothing: Neighbours on each side whose mean is what attention weighs; 0: none.
        pooling: How the source becomes one vector, for model.attention: null.
    """

    type: Literal["feed_forward"] = "feed_forward"
    units: Size = 256
    context_size: Annotated[int, Field(ge=1, le=100)] = 5
    smoothing: Annotated[int, Field(ge=0, le=100)] = 2
    pooling: PoolingName = "mean"


DecoderConfig = Annotated[
    LuongDecoderConfig
    | BahdanauDecoderConfig
    | FeedForwardDecoderConfig
    | TransformerDecoderConfig,
    ByType("luong"),
]


def add_default_score(model: Any, decoder_type: str = "luong") -> Any:
    """Return a section ``model`` with the default score of its decoder, unless it has a score.

    Args:
        model: The section, as in the YAML file.
        decoder_type: The type of the decoder if the section has none.
    """
    if not isinstance(model, dict) or not isinstance(model.get("attention", {}), dict):
        return model
    decoder = model.get("decoder", {"type": decoder_type})
    if isinstance(decoder, dict):
        decoder_type = decoder.get("type", "luong")
    else:
        decoder_type = "luong"
    attention = {"score": _default_score(decoder_type), **model.get("attention", {})}
    return {**model, "attention": attention}


def _default_score(decoder_type: Any) -> str:
    """Return the default score of a type of decoder, known or not."""
    decoders: tuple[type[_CopyingDecoderConfig], ...] = get_args(get_args(DecoderConfig)[0])
    for decoder in decoders:
        if decoder.model_fields["type"].default == decoder_type:
            return decoder.default_score
    return _CopyingDecoderConfig.default_score


class PretrainedEmbeddingsConfig(Section):
    """Word vectors in the text format of GloVe or word2vec, for the initial embeddings.

    A task adds the keys of its files; each of them is a path or null.

    Attributes:
        trainable: Train the embeddings further.
        oov: Embeddings of tokens that the file does not contain: random vectors of the same scale,
            or zeros.
    """

    trainable: bool = True
    oov: Literal["random", "zero"] = "random"

    def files(self) -> dict[str, str]:
        """Return the file of each key that has one."""
        common = PretrainedEmbeddingsConfig.model_fields
        keys = [name for name in type(self).model_fields if name not in common]
        values = {name: getattr(self, name) for name in keys}
        return {name: path for name, path in values.items() if path is not None}

    def resolved(self, base: Path) -> Self:
        """Return a copy with absolute paths."""
        return self.model_copy(
            update={name: absolute(base, path) for name, path in self.files().items()}
        )


class TokenEmbeddingsConfig(PretrainedEmbeddingsConfig):
    """Word vectors in the text format of GloVe or word2vec, for the initial embeddings.

    Attributes:
        file: File, .txt or .gz.
    """

    file: Annotated[str, Field(examples=["glove.6B.300d.txt"])]
