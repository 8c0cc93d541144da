"""A captioner as it is exported: encoded images in, sentences out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from models.search import Hypotheses
from models.seq2seq import Seq2Seq
from models.tasks import heads
from models.tasks.captioning.images import read
from models.tasks.found import N_BEST, best, n_best, scored, scored_as, search_of
from models.tasks.pieces import counts, read_pieces
from models.tasks.served import Served, ServedModule, with_signature
from models.vocabulary import PAD

_IMAGES = [tf.TensorSpec([None], tf.string, name="image")]
_PAIRS = [*_IMAGES, tf.TensorSpec([None], tf.string, name="caption")]
# What the heads look at: see ``ServedCaptioner.heads``.
_LOOKS = [
    {"rows": "pieces", "columns": "image", "weights": "cross_heads"},
    {"rows": "pieces", "columns": heads.READ, "weights": "target_heads"},
]
_HEADS: dict[str, list[str | None]] = {
    "pieces": ["length"],
    "length": [],
    heads.READ: ["length"],
    "cross_heads": [None, None, "length", None, None],
    "target_heads": [None, None, "length", "length"],
}


class ServedCaptioner(ServedModule):
    """Decoding of images, model, search and tokenizer in one graph: what TensorFlow Serving runs.

    Args:
        model: the trained model, in float32.
        tokenizer: of the captions (``tensorflow_text``).
        image: the YAML's section ``model.image``: ``height`` and ``width``.
        search: the YAML's section ``search``.
    """

    _model: Seq2Seq

    def __init__(
        self, model: Seq2Seq, tokenizer: Any, image: Mapping[str, int], search: Mapping[str, Any]
    ):
        super().__init__(model, name="served_captioner")
        self.tokenizer = tokenizer
        self._image = dict(image)
        self._search, limits = search_of(search)
        self._longest = int(limits["max_length_offset"])  # the others are about a source's length

    def served(self, task: str) -> Served:
        """The whole export; ``task`` is the name of the task that it is for."""
        image = {"name": "image", "kind": "image"}
        given = {"name": "caption", "kind": "text", "like": "caption"}
        answer: dict[str, list[str | None]] = {"caption": [], "score": []}
        detail: dict[str, list[str | None]] = {
            **answer,
            "pieces": ["length"],
            "length": [],
            "alignment": ["length", None, None],
        }
        meaning = {
            "serving_default": {"inputs": [image], "outputs": answer},
            "align": {"inputs": [image], "outputs": detail},
            "score": {
                "inputs": [image, given],
                "outputs": {**scored_as("pieces"), "alignment": detail["alignment"]},
            },
            "nbest": {"inputs": [image], "outputs": dict(N_BEST)},
            "heads": {"inputs": [image, given], "outputs": _HEADS},
        }
        signatures: dict[str, Callable[..., Any]] = {
            "serving_default": self.describe,
            "align": self.align,
            "score": self.score,
        }
        # Made here: a method with a signature would be exported wherever the module is.
        if self._search.hypotheses > 1:
            signatures["nbest"] = with_signature(_IMAGES)(self.n_best)
        if self._model.with_heads:
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
            "heads": heads.told(_LOOKS if self._model.with_heads else []),
            "cut": None,
            "signatures": {name: meaning[name] for name in signatures},
        }
        return Served(self, signatures, contract)

    @with_signature(_IMAGES)
    def describe(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        """Encoded images ``[batch]`` → ``caption`` ``[batch]`` and ``score`` ``[batch]``.

        The score is the natural logarithm of the probability of the caption.
        """
        return best(self.tokenizer, self._find(self._read(image)), "caption")

    @with_signature(_IMAGES)
    def align(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        """As ``describe``, with the pieces of the caption and where the model looked for each.

        ``alignment`` is ``[batch, pieces, rows, columns]`` over the grid of the image, from its
        upper left corner; rows from ``length`` on are padding. The end of sentence counts.
        """
        pixels = self._read(image)
        found = self._find(pixels)
        ids = found.ids[:, 0]
        _, weights = self._model.teacher_force(pixels, ids)
        real = tf.cast(ids != PAD, tf.float32)[:, :, None, None]
        return {
            **best(self.tokenizer, found, "caption"),
            "pieces": self.tokenizer.id_to_string(ids),
            "length": found.lengths[:, 0],
            "alignment": real * self._grid(weights),
        }

    @with_signature(_PAIRS)
    def score(self, image: tf.Tensor, caption: tf.Tensor) -> dict[str, tf.Tensor]:
        """Encoded images and captions, ``[batch]`` each → how probable the captions are.

        See ``scored``; ``alignment`` is where the model looks for each piece, as in ``align``.
        """
        pixels = self._read(image)
        told, looks = scored(self._model, self.tokenizer, pixels, caption, self._longest, "pieces")
        return {**told, "alignment": self._grid(looks)}

    def _grid(self, looks: tf.Tensor) -> tf.Tensor:
        """``[..., cells]`` → ``[..., rows, columns]`` of the image."""
        shape = tf.concat([tf.shape(looks)[:-1], self._model.encoder.grid], axis=0)
        return tf.reshape(tf.cast(looks, tf.float32), shape)

    def n_best(self, image: tf.Tensor) -> dict[str, tf.Tensor]:
        """Encoded images ``[batch]`` → all that the search found, each ``[batch, n]``.

        See ``n_best`` of ``models.tasks.found``.
        """
        return n_best(self.tokenizer, self._find(self._read(image)))

    def heads(self, image: tf.Tensor, caption: tf.Tensor) -> dict[str, tf.Tensor]:
        """Encoded images and captions, ``[batch]`` each → where every head of every layer looks.

        ``cross_heads`` ``[batch, layers, heads, pieces, rows, columns]`` is over the grid of the
        image, ``target_heads`` ``[batch, layers, heads, pieces, pieces]`` over what the decoder
        has read, ``read_pieces`` ``[batch, pieces]``.
        """
        ids, _ = read_pieces(self.tokenizer, caption, self._longest)
        written = ids != PAD
        real = {"cross": written, "target": written}
        found = heads.weights(self._model, self._read(image), ids, real)
        return {
            **found,
            "pieces": self.tokenizer.id_to_string(ids),
            "length": counts(ids),
            heads.READ: self.tokenizer.id_to_string(heads.read_ids(ids)),
            "cross_heads": self._grid(found["cross_heads"]),
        }

    def _read(self, image: tf.Tensor) -> tf.Tensor:
        return read(image, self._image["height"], self._image["width"])

    def _find(self, pixels: tf.Tensor) -> Hypotheses:
        limits = tf.fill([tf.shape(pixels)[0]], self._longest + 1)
        # What is drawn for an image depends on nothing but the image and the seed.
        sums = tf.reduce_sum(tf.cast(pixels, tf.int32), axis=[1, 2, 3])
        return self._model.search(pixels, self._search, limits, keys=sums)
