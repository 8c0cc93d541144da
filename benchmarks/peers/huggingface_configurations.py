"""The small models that `huggingface_models` writes, and what each of them covers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Configuration:
    """One model.

    Attributes:
        family: ``marian``, ``m2m`` or ``nllb``.
        model: settings of config.json.
        generation: settings of generation_config.json; ``length_penalty`` and others.
        vocabularies: Marian: ``shared``, or ``separate`` for the two languages.
        languages: codes of the languages, in the order of the tokenizer's list.
        language_codes: M2M100: the tokenizer's list, ``wmt21`` or ``m2m100``.
        spm: options of `huggingface_text.train_sentencepiece`.
        spm_size: number of tokens of a SentencePiece model.
        without_tokens: number of tokens of the SentencePiece model that vocab.json lacks.
        more_tokens: entries of vocab.json that the SentencePiece model lacks.
        dtype: of the weights in the file.
        weights_file: ``model.safetensors`` or ``pytorch_model.bin``.
        embedding_deviation: standard deviation of the embeddings.
        end_bias: Marian: bias of EOS, which determines the length of outputs.
        end_scale: factor of the embedding of EOS, for the same purpose.
        zero_padding: whether the embedding of the padding token is zero, as in converted models.
        seed: of the weights.
    """

    family: str
    model: dict[str, Any]
    generation: dict[str, Any] = field(default_factory=dict)
    vocabularies: str = "shared"
    languages: tuple[str, ...] = ()
    language_codes: str = "wmt21"
    spm: dict[str, Any] = field(default_factory=dict)
    spm_size: int = 45
    without_tokens: int = 0
    more_tokens: tuple[str, ...] = ()
    dtype: str = "float32"
    weights_file: str = "model.safetensors"
    embedding_deviation: float = 0.5
    end_bias: float = 3.0
    end_scale: float = 1.0
    zero_padding: bool = True
    seed: int = 0

    @property
    def unused_rows(self) -> int:
        """Rows after the last token: M2M100 has eight "made-up words", NLLB two rows."""
        return {"marian": 0, "m2m": 8, "nllb": 2}[self.family]


def _sizes(
    depth: int, encoder: tuple[int, int, int], decoder: tuple[int, int, int]
) -> dict[str, Any]:
    """Settings of sizes; those of the sides are layers, heads and width of the feed-forward."""
    return {
        "d_model": depth,
        "encoder_layers": encoder[0],
        "encoder_attention_heads": encoder[1],
        "encoder_ffn_dim": encoder[2],
        "decoder_layers": decoder[0],
        "decoder_attention_heads": decoder[1],
        "decoder_ffn_dim": decoder[2],
        "max_position_embeddings": 64,
    }


_SEARCH = {"num_beams": 4, "max_length": 24}
_OPUS_SIZES = {**_sizes(512, (6, 8, 2048), (6, 8, 2048)), "max_position_embeddings": 512}

CONFIGURATIONS = {
    # As OPUS-MT: shared embeddings, swish, scaled embeddings, renormalized log-probabilities. The
    # SentencePiece models and vocab.json have tokens that the others lack.
    "marian-opus": Configuration(
        "marian",
        {**_sizes(12, (2, 2, 24), (2, 2, 24)), "activation_function": "swish"}
        | {"scale_embedding": True},
        {**_SEARCH, "length_penalty": 1.0, "early_stopping": False, "renormalize_logits": True},
        without_tokens=4,
        more_tokens=("▁zzz", "漢字", "😀", ">>"),
        end_bias=4.0,
        seed=8,
    ),
    # Two vocabularies of different sizes, a decoder that is deeper than the encoder.
    "marian-separate": Configuration(
        "marian",
        {**_sizes(8, (1, 2, 16), (3, 2, 24)), "activation_function": "relu"}
        | {"scale_embedding": True, "share_encoder_decoder_embeddings": False},
        {**_SEARCH, "length_penalty": 0.6, "early_stopping": True},
        vocabularies="separate",
        end_bias=4.0,
        seed=1007,
    ),
    # One vocabulary with three matrices, no scale, other numbers of heads on the sides.
    "marian-untied": Configuration(
        "marian",
        {**_sizes(8, (3, 2, 16), (1, 4, 32)), "activation_function": "gelu"}
        | {"scale_embedding": False, "tie_word_embeddings": False},
        {**_SEARCH, "length_penalty": 2.0, "early_stopping": False, "renormalize_logits": True},
        embedding_deviation=0.8,
        zero_padding=False,
        end_bias=6.0,
        seed=2005,
    ),
    # Codes of target languages before the source text.
    "marian-multilingual": Configuration(
        "marian",
        {**_sizes(8, (2, 2, 16), (2, 2, 16)), "activation_function": "swish"}
        | {"scale_embedding": True},
        {**_SEARCH, "length_penalty": 1.0, "early_stopping": True},
        languages=(">>deu<<", ">>fra<<", ">>cmn_Hans<<"),
        embedding_deviation=0.8,
        end_bias=2.0,
        seed=3008,
    ),
    # A file of PyTorch, which contains tied matrices several times. BPE instead of a unigram model.
    "marian-pytorch": Configuration(
        "marian",
        {**_sizes(8, (2, 4, 16), (1, 2, 16)), "activation_function": "relu"}
        | {"scale_embedding": False},
        {**_SEARCH, "length_penalty": 1.0, "early_stopping": False},
        spm={"model_type": "bpe"},
        weights_file="pytorch_model.bin",
        embedding_deviation=0.9,
        zero_padding=False,
        end_bias=6.0,
        seed=4004,
    ),
    # Half precision, and a normalization: capital letters become small ones.
    "marian-float16": Configuration(
        "marian",
        {**_sizes(8, (1, 2, 16), (2, 2, 16)), "activation_function": "swish"}
        | {"scale_embedding": True},
        {**_SEARCH, "length_penalty": 1.0, "early_stopping": True, "renormalize_logits": True},
        spm={"rules": "".join(f"{code:X}\t{code + 32:X}\n" for code in range(65, 91))},
        dtype="float16",
        embedding_deviation=0.8,
        end_bias=4.0,
        seed=5004,
    ),
    # bfloat16, and the search that stops only when no prefix can win.
    "marian-bfloat16": Configuration(
        "marian",
        {**_sizes(12, (2, 3, 16), (1, 3, 16)), "activation_function": "gelu"}
        | {"scale_embedding": True},
        {**_SEARCH, "length_penalty": 0.6, "early_stopping": "never"},
        dtype="bfloat16",
        end_bias=0.0,
        seed=6008,
    ),
    # Two vocabularies, an output matrix of its own, and a file of PyTorch in half precision.
    "marian-separate-untied": Configuration(
        "marian",
        {**_sizes(8, (1, 2, 16), (1, 2, 16)), "activation_function": "swish"}
        | {"scale_embedding": True, "share_encoder_decoder_embeddings": False}
        | {"tie_word_embeddings": False},
        {**_SEARCH, "length_penalty": 1.0, "early_stopping": False},
        vocabularies="separate",
        dtype="float16",
        weights_file="pytorch_model.bin",
        embedding_deviation=0.8,
        end_bias=4.0,
        seed=7005,
    ),
    # As M2M100: scaled embeddings, relu, pre-normalization, languages in any direction.
    "m2m": Configuration(
        "m2m",
        {**_sizes(8, (2, 2, 16), (2, 2, 16)), "activation_function": "relu"}
        | {"scale_embedding": True},
        {**_SEARCH, "length_penalty": 1.0, "early_stopping": True},
        languages=("en", "de", "ru"),
        spm={"model_type": "bpe"},
        spm_size=75,
        end_scale=4.0,
        seed=8000,
    ),
    # The hundred languages of M2M100, half precision, a unigram model.
    "m2m-float16": Configuration(
        "m2m",
        {**_sizes(8, (1, 2, 16), (2, 2, 16)), "activation_function": "relu"}
        | {"scale_embedding": True},
        {**_SEARCH, "length_penalty": 0.6, "early_stopping": False},
        languages=("fr", "ast", "zu"),
        language_codes="m2m100",
        spm_size=75,
        dtype="float16",
        end_scale=1.5,
        seed=9004,
    ),
    # No scale, another activation, sides that differ, a file of PyTorch.
    "m2m-unscaled": Configuration(
        "m2m",
        {**_sizes(12, (1, 3, 16), (2, 2, 16)), "activation_function": "gelu"}
        | {"scale_embedding": False},
        {**_SEARCH, "length_penalty": 2.0, "early_stopping": True, "forced_eos_token_id": 2},
        languages=("en", "zh"),
        spm={"model_type": "bpe"},
        spm_size=75,
        without_tokens=3,
        more_tokens=("▁zzz", "漢字"),
        weights_file="pytorch_model.bin",
        embedding_deviation=0.9,
        end_scale=2.5,
        seed=10004000,
    ),
    # NLLB: codes of languages before the mask, after the tokens of SentencePiece.
    "nllb": Configuration(
        "nllb",
        {**_sizes(8, (2, 2, 16), (2, 2, 16)), "activation_function": "relu"}
        | {"scale_embedding": True},
        {**_SEARCH, "length_penalty": 1.0, "early_stopping": False, "forced_eos_token_id": 2},
        languages=("ace_Latn", "deu_Latn", "eng_Latn", "fra_Latn", "rus_Cyrl", "zho_Hans"),
        spm={"model_type": "bpe"},
        spm_size=75,
        end_scale=2.5,
        seed=11003,
    ),
}

# The sizes of Helsinki-NLP/opus-mt-en-de. SentencePiece's nmt_nfkc is in its files, too. Outputs of
# random weights do not end, so all of them have the greatest length, here that of a sentence.
OPUS = Configuration(
    "marian",
    {**_OPUS_SIZES, "activation_function": "swish", "scale_embedding": True, "vocab_size": 58_101},
    {"num_beams": 4, "max_length": 32, "length_penalty": 1.0, "renormalize_logits": True},
    spm={"normalization": "nmt_nfkc"},
    spm_size=32_000,
    embedding_deviation=0.05,
)
