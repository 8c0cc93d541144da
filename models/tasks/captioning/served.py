"""The exported graph of captioning, and the decoding of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from regard.models.search import Hypotheses
from regard.models.seq2seq import Seq2Seq
from regard.models.settings.search import SearchLimits
from regard.models.tasks import attention_heads
from regard.models.tasks.captioning.settings import ImageConfig
from regard.models.tasks.search_outputs import (
    N_BEST,
    best,
    count_tokens,
    create_search,
    n_best,
    score_output_lengths,
    score_texts,
    token_ids,
)
from regard.models.tasks.served_model import (
    OutputLengths,
    ServedModel,
    ServedModule,
    with_signature,
)
from regard.models.vocabulary import PAD

_IMAGES = [tf.TensorSpec([None], tf.string, name="image")]
_PAIRS = [*_IMAGES, tf.TensorSpec([None], tf.string, name="caption")]
# The attention of the signature ``heads``, and the lengths of its outputs.
_HEADS = [
    {"rows": "pieces", "columns": "image", "weights": "cross_heads"},
    {"rows": "pieces", "columns": attention_heads.DECODER_INPUTS, "weights": "target_heads"},
]
_HEAD_LENGTHS: OutputLengths = {
    "pieces": ["length"],
    "length": [],
    attention_heads.DECODER_INPUTS: ["length"],
    "cross_heads": [None, None, "length", None, None],
    "target_heads": [None, None, "length", "length"],
}


def decode_images(encoded: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """Decode images ``[batch]`` to uint8 ``[batch, height, width, 3]``.

    JPEG, PNG, GIF (its first frame) and BMP. An image of another aspect ratio is stretched, so
    that each cell of a grid always covers the same part of the image.

    Raises:
        tf.errors.InvalidArgumentError: An image is invalid or truncated (when the graph runs).
    """

    def decode(content: tf.Tensor) -> tf.Tensor:
        image = tf.io.decode_image(content, channels=3, expand_animations=False)
        image.set_shape([None, None, 3])
        resized = tf.image.resize(image, [height, width], antialias=True)
        return tf.cast(tf.clip_by_value(tf.round(resized), 0.0, 255.0), tf.uint8)

    spec = tf.TensorSpec([height, width, 3], tf.uint8)
    return tf.map_fn(decode, encoded, fn_output_signature=spec)


def encode_images(images: tf.Tensor) -> tf.Tensor:
    """Encode uint8 ``[batch, height, width, 3]`` as PNGs ``[batch]``, without loss."""
    return tf.map_fn(tf.io.encode_png, images, fn_output_signature=tf.TensorSpec([], tf.string))


class ServedCaptioner(ServedModule):
    """Image decoding, model, search and tokenizer in one graph, as TensorFlow Serving runs it.

    Args:
        model: The trained model, in float32.
        tokenizer: The tokenizer of the captions (``tensorflow_text``).
        image: The section ``model.image``.
        search: The section ``search``.
    """

    _model: Seq2Seq

    def __init__(self, model: Seq2Seq, tokenizer: Any, image: ImageConfig, search: SearchLimits):
        super().__init__(model, name="served_captioner")
        self.tokenizer = tokenizer
        self._image = image
        self._search = create_search(search)
        self._max_length = search.max_length_offset  # other limits depend on a source's length

    def served_model(self, task: str) -> ServedModel:
        """Return the signatures and the contract of the export.

        Args:
            task: The name of the task.
        """
        image = {"name": "image", "kind": "image"}
        caption = {"name": "caption", "kind": "text", "like": "caption"}
        outputs: OutputLengths = {"caption": [], "score": []}
        detail: OutputLengths = {
            **outputs,
            "pieces": ["length"],
            "length": [],
            "alignment": ["length", None, None],
        }
        scored = {**score_output_lengths("pieces"), "alignment": detail["alignment"]}
        described = {
            "serving_default": {"inputs": [image], "outputs": outputs},
            "align": {"inputs": [image], "outputs": detail},
            "score": {"inputs": [image, caption], "outputs": scored},
            "nbest": {"inputs": [image], "outputs": dict(N_BEST)},
            "heads": {"inputs": [image, caption], "outputs": _HEAD_LENGTHS},
        }
        signatures: dict[str, Callable[..., Any]] = {
            "serving_default": self.predict,
            "align": self.align,
            "score": self.score,
        }
        # Decorated here: a decorated method would be exported with every module.
        if self._search.hypotheses > 1:
            signatures["nbest"] = with_signature(_IMAGES)(self.n_best)
        if self._model.head_names:
            signatures["heads"] = with_signature(_PAIRS)(self.heads)
        contract = {
            "task": task,
            "inputs": [image],
            "answer": "caption",
            "answer_kind": "text",
            "score": "score",
            "detail": "align",
            "scored": "score",
            "size": None,
            "looks": {"rows": "pieces", "columns": "image", "weights": "alignment"},
            "heads": attention_heads.contract_entry(_HEADS if self._model.head_names else []),
            "cut": None,
            "signatures": {name: described[name] for name in signatures},
        }
        return ServedModel(self, signatures, contract)

    @with_signature(_IMAGES)
    def predict(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return ``caption`` ``[batch]`` and ``score`` ``[batch]`` for encoded images ``[batch]``.

        The score is the natural logarithm of the probability of the caption.
        """
        return best(self.tokenizer, self._run_search(self._pixels(image)), "caption")

    @with_signature(_IMAGES)
    def align(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the outputs of ``predict``, the tokens of the caption, and their attention.

        ``alignment`` is ``[batch, tokens, rows, columns]`` over the grid of the image, from its
        upper left corner; tokens from ``length`` on are padding. EOS counts.
        """
        pixels = self._pixels(image)
        hypotheses = self._run_search(pixels)
        ids = hypotheses.ids[:, 0]
        _, weights = self._model.teacher_force(pixels, ids)
        mask = tf.cast(ids != PAD, tf.float32)[:, :, None, None]
        return {
            **best(self.tokenizer, hypotheses, "caption"),
            "pieces": self.tokenizer.id_to_string(ids),
            "length": hypotheses.lengths[:, 0],
            "alignment": mask * self._to_grid(weights),
        }

    @with_signature(_PAIRS)
    def score(self, image: tf.Tensor, caption: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the probability of given captions ``[batch]`` for encoded images ``[batch]``.

        See ``score_texts``; ``alignment`` is as in ``align``.
        """
        pixels = self._pixels(image)
        outputs, alignment = score_texts(
            self._model, self.tokenizer, pixels, caption, self._max_length, "pieces"
        )
        return {**outputs, "alignment": self._to_grid(alignment)}

    def _to_grid(self, weights: tf.Tensor) -> tf.Tensor:
        """Reshape ``[..., cells]`` to ``[..., rows, columns]`` of the image."""
        shape = tf.concat([tf.shape(weights)[:-1], self._model.encoder.grid], axis=0)
        return tf.reshape(tf.cast(weights, tf.float32), shape)

    def n_best(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return all hypotheses for images ``[batch]``, see ``search_outputs.n_best``."""
        return n_best(self.tokenizer, self._run_search(self._pixels(image)))

    def heads(self, image: tf.Tensor, caption: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the attention of every head for given captions ``[batch]`` and images ``[batch]``.

        ``cross_heads`` ``[batch, layers, heads, tokens, rows, columns]`` is the attention to the
        grid of the image, ``target_heads`` ``[batch, layers, heads, tokens, tokens]`` the decoder's
        self-attention, to its inputs ``read_pieces`` ``[batch, tokens]``.
        """
        ids, _ = token_ids(self.tokenizer, caption, self._max_length)
        mask = ids != PAD
        masks = {"cross": mask, "target": mask}
        outputs = attention_heads.head_outputs(self._model, self._pixels(image), ids, masks)
        inputs = attention_heads.decoder_inputs(ids)
        return {
            **outputs,
            "pieces": self.tokenizer.id_to_string(ids),
            "length": count_tokens(ids),
            attention_heads.DECODER_INPUTS: self.tokenizer.id_to_string(inputs),
            "cross_heads": self._to_grid(outputs["cross_heads"]),
        }

    def _pixels(self, image: tf.Tensor) -> tf.Tensor:
        return decode_images(image, self._image.height, self._image.width)

    def _run_search(self, pixels: tf.Tensor) -> Hypotheses:
        limits = tf.fill([tf.shape(pixels)[0]], self._max_length + 1)
        # Sampling depends only on the image and the seed.
        sums = tf.reduce_sum(tf.cast(pixels, tf.int32), axis=[1, 2, 3])
        return self._model.search(pixels, self._search, limits, keys=sums)
