"""What text-to-text tasks have in common: parts, the section ``model``, and its checks."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Strict, model_validator

from regard.core.bounds import Count, Rate, Size
from regard.models.settings import checks, networks
from regard.models.settings.attention import DecoderAttentionConfig
from regard.models.settings.base import Listed, Problem, Section
from regard.models.settings.protect import ProtectConfig
from regard.models.settings.word_alignments import AlignmentLinksConfig
from regard.models.tasks.description import Parts

PARTS = Parts(
    "regard.models.tasks.text_to_text",
    preprocessing="TextPreprocessing",
    network="TextNetwork",
    served="ServedText",
)


class TextEmbeddingsConfig(networks.PretrainedEmbeddingsConfig):
    """Word vectors in the text format of GloVe or word2vec, for the initial embeddings.

    Attributes:
        source: File for the source tokens, .txt or .gz; null: random.
        target: File for the target tokens, .txt or .gz; null: random.
    """

    source: str | None = None
    target: str | None = None


# The output with the number of tags of a source without a partner, with ``data.protect``.
UNPAIRED = "source_unpaired"
# The outputs of all text-to-text tasks in addition to the text.
OTHER_OUTPUTS = (
    "alignment",
    "confidence",
    UNPAIRED,
    *(f"{side}_{name}" for side in ("source", "target") for name in ("pieces", "length", "cut")),
)


class TextToTextModelConfig(Section):
    """The network: an encoder, a decoder, and attention.

    Attributes:
        embedding: Width of the token embeddings and of Transformer layers.
        dropout: Dropout rate.
        tie_embeddings: Share one matrix between the target embeddings and the softmax (output), and
            also with the source embeddings (all; needs tokenizer.shared).
        scale_embeddings: Multiply embeddings by the square root of their width (Vaswani 2017);
            pretrained word vectors that are not tied are never scaled.
        pretrained: Pretrained word vectors; null: random initialization.
        encoder: Encoder, or a list: each reads the outputs of the one before.
        decoder: Decoder.
        first_tokens: Pairs of ids: the decoder of a source that begins with the first one reads the
            second one before the output, as in M2M-100 (Fan et al. 2021). regard import writes
            them; they need training.warm_start.keep_tokenizer.
        attention: Attention to the source; null: only the final state of the encoder, or for
            feed_forward the pooled source.
    """

    embedding: Size = 256
    dropout: Rate = 0.2
    tie_embeddings: Literal["none", "output", "all"] = "none"
    scale_embeddings: bool = True
    pretrained: TextEmbeddingsConfig | None = None
    encoder: networks.EncodersConfig = networks.RecurrentEncoderConfig()
    decoder: networks.DecoderConfig = networks.LuongDecoderConfig()
    first_tokens: Listed[Annotated[tuple[Count, Count], Strict(False)]] = ()
    attention: DecoderAttentionConfig | None = DecoderAttentionConfig()

    _default_score = model_validator(mode="before")(networks.add_default_score)

    @property
    def copies(self) -> bool:
        """Whether source tokens are copied, so that unknown ones need ids."""
        return bool(getattr(self.decoder, "pointer_generator", False))


class TextPreprocessingConfig(Section):
    """What the preprocessing of text-to-text tasks depends on."""

    copies: bool = False
    tag_feature: str | None = None
    protect: ProtectConfig | None = None
    guided_alignment: AlignmentLinksConfig | None = None


def validate(config: Any) -> Iterator[Problem]:
    """Yield the settings of a configuration that cannot work together."""
    model = config.model
    yield from checks.check_seq2seq(config, checks.encoder_width(model.encoder, model.embedding))
    if model.copies:
        path = ("model", "decoder", "pointer_generator")
        if model.attention is None:
            yield Problem(path, "copying needs model.attention; set it, or use false")
        if not config.tokenizer.shared:
            message = "copying needs one tokenizer for both sides; set tokenizer.shared: true, or "
            yield Problem(path, f"{message}use false")
    if model.first_tokens:
        key, start = ("model", "first_tokens"), config.training.warm_start
        if not (start and start.keep_tokenizer):
            message = "has the ids of an imported model; set training.warm_start.keep_tokenizer: "
            yield Problem(key, f"{message}true, or remove it")
        if config.training.scheduled_sampling:
            yield Problem(key, "works without training.scheduled_sampling; remove one of them")
    if model.pretrained is not None:
        if not model.pretrained.files():
            yield Problem(("model", "pretrained"), "has no file; give source, target or both")
        if model.tie_embeddings == "all" and len(model.pretrained.files()) == 2:
            message = "tie_embeddings: all has one matrix; give source or target, not both"
            yield Problem(("model", "pretrained", "target"), message)
