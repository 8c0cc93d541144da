"""SavedModels with the contracts of ours but next to nothing inside, and examples to decode."""

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf
from tfx.types import standard_artifacts
from tfx.types.artifact import Artifact

from regard.core.features import Feature
from regard.core.kinds import TEXT
from regard.serving.contract import CONTRACT
from tests import shared_folders

FEATURES = [Feature("source", TEXT), Feature("target", TEXT, role="reference")]
MOST_LETTERS = 100
_SHOWN = ("source_pieces", "source_length", "alignment")
_TEXTS = [tf.TensorSpec([None], tf.string, name="source")]


def _split(text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Split texts into letters, followed by empty ones, and count those of each text.

    Dense tensors: with ragged ones, a graph has three times the operations.
    """
    letters = tf.strings.unicode_split(text, "UTF-8")
    return letters.to_tensor(""), tf.cast(letters.row_lengths(), tf.int32)


def _end(letters: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Add an end of sentence, as real models have on both sides, and padding."""
    letters = tf.pad(letters, [[0, 0], [0, 1]])
    places = tf.range(tf.shape(letters)[1])[None, :]
    marks = tf.where(places == lengths[:, None], "</s>", "<pad>")
    return tf.where(places < lengths[:, None], letters, marks)


class Reverser(tf.Module):
    """Spells a text backwards in capitals; each letter looks at the letter it came from.

    ``bug`` breaks it in one way: ``batch`` makes the score depend on the padding, ``flat`` gives
    an output without the batch's dimension, ``empty`` fails on an empty source, ``nan`` gives
    three letters no number, ``weights`` gives `align` other weights than it gave before,
    ``refuse`` refuses long sources as the real models do if configured to, ``score`` finds another
    score,
    ``spelling`` scores an answer with another tokenization.
    """

    def __init__(self, bug: str = ""):
        super().__init__()
        self.bug = bug
        self.per_letter = tf.Variable(-0.5, name="per_letter")

    def contract(self) -> dict[str, Any]:
        source = {"name": "source", "kind": "text"}
        answer: dict[str, Any] = {"translation": [], "score": []}
        tokens = {"target_pieces": ["target_length"], "target_length": []}
        detail = {
            **answer,
            **tokens,
            "source_pieces": ["source_length"],
            "source_length": [],
            "source_cut": [],
            "alignment": ["target_length", "source_length"],
        }
        arguments = {"name": "target", "kind": "text", "like": "translation"}
        return {
            "task": "translation",
            "about": "The model translates a text.",
            "inputs": [source],
            "answer": "translation",
            "answer_kind": "text",
            "score": "score",
            "detail": "align",
            "scored": "score",
            "size": {"output": "source_length", "minus": 1, "unit": "source tokens"},
            "looks": {"rows": "target_pieces", "columns": "source_pieces", "weights": "alignment"},
            "heads": None,
            "cut": "source_cut",
            "signatures": {
                "serving_default": {"inputs": [source], "outputs": answer},
                "align": {"inputs": [source], "outputs": detail},
                "score": {
                    "inputs": [source, arguments],
                    "outputs": {**{name: detail[name] for name in _SHOWN}, "score": [], **tokens},
                },
            },
        }

    def signatures(self) -> dict[str, Any]:
        return {"serving_default": self.translate, "align": self.align, "score": self.score}

    def answer(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        # Cut, as ours cut what is too long: an alignment grows with the square of the length.
        letters, lengths = _split(source)
        letters = letters[:, :MOST_LETTERS]
        cut = tf.maximum(lengths - MOST_LETTERS, 0)
        lengths -= cut
        score = self.per_letter * tf.cast(lengths, tf.float32)
        if self.bug == "batch":
            score -= tf.cast(tf.shape(letters)[1], tf.float32)
        if self.bug == "nan":
            score = tf.where(lengths == 3, float("nan"), score)
        if self.bug == "refuse":
            message = "a source has more than the 100 tokens of max_source_length; the lengths:"
            with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(cut == 0), [message])]):
                score = tf.identity(score)
        if self.bug == "empty":
            with tf.control_dependencies([tf.debugging.assert_positive(lengths)]):
                score = tf.identity(score)
        # The last row of the alignment, for the end of the sentence, looks at the end.
        rows = tf.range(tf.shape(letters)[1] + 1)[None, :]
        looked_at = tf.where(rows < lengths[:, None], lengths[:, None] - 1 - rows, rows)
        capitals = tf.strings.upper(letters, encoding="utf-8")
        capitals = tf.gather(capitals, looked_at[:, :-1], batch_dims=1)
        alignment = tf.cast(rows[:, None, :] == looked_at[:, :, None], tf.float32)
        return {
            "translation": tf.strings.reduce_join(capitals, axis=1),
            "score": score,
            "source_pieces": _end(letters, lengths),
            "source_length": lengths + 1,
            "source_cut": cut,
            "target_pieces": _end(capitals, lengths),
            "target_length": lengths + 1,
            "alignment": alignment * 0.5 if self.bug == "weights" else alignment,
        }

    @tf.function(input_signature=_TEXTS)
    def translate(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        out = self.answer(source)
        score = tf.reduce_sum(out["score"]) if self.bug == "flat" else out["score"]
        return {"translation": out["translation"], "score": score}

    @tf.function(input_signature=[*_TEXTS, tf.TensorSpec([None], tf.string, name="target")])
    def score(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        if self.bug == "spelling":
            target = tf.strings.lower(target, encoding="utf-8")
        letters, lengths = _split(target)
        each = self.per_letter * (2.0 if self.bug == "score" else 1.0)
        if self.bug == "nan":
            each = tf.where(lengths == 3, float("nan"), each)
        read = self.answer(source)
        # Each letter of any text looks at its place from the source's end; the others nowhere.
        rows = tf.range(tf.shape(letters)[1] + 1)[None, :, None]
        columns = tf.range(tf.shape(read["source_pieces"])[1])[None, None, :]
        end = read["source_length"][:, None, None] - 2
        return {
            "source_pieces": read["source_pieces"],
            "source_length": read["source_length"],
            "alignment": tf.cast(columns == end - rows, tf.float32),
            "score": each * tf.cast(lengths, tf.float32),
            "target_pieces": _end(letters, lengths),
            "target_length": lengths + 1,
        }

    @tf.function(input_signature=_TEXTS)
    def align(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        return self.answer(source)


class Confident(Reverser):
    """The probability of an output is its confidence; four letters have none, as blank texts."""

    def contract(self) -> dict[str, Any]:
        contract = super().contract()
        for name in ("serving_default", "align"):
            signature = contract["signatures"][name]
            signature["outputs"] = {**signature["outputs"], "confidence": []}
        return {**contract, "confidence": {"output": "confidence", "metric": "chrf", "good": 50.0}}

    def answer(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = super().answer(source)
        confidence = tf.exp(outputs["score"])
        blank = tf.fill(tf.shape(confidence), float("nan"))
        return outputs | {"confidence": tf.where(outputs["score"] == -2.0, blank, confidence)}

    @tf.function(input_signature=_TEXTS)
    def translate(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = self.answer(source)
        return {name: outputs[name] for name in ("translation", "score", "confidence")}


class ManyHeaded(Reverser):
    """A reverser with two layers of three heads: of a layer the first looks as it should, the
    others look back to front and evenly.

    Args:
        longest: the letters of the longest source whose weights it gives.
    """

    def __init__(self, longest: int = MOST_LETTERS):
        super().__init__()
        self.longest = longest

    def contract(self) -> dict[str, Any]:
        result = super().contract()
        arguments = result["signatures"]["score"]["inputs"]
        detail = result["signatures"]["align"]["outputs"]
        names = ("source_pieces", "source_length", "target_pieces", "target_length")
        weights = {"cross_heads": [None, None, "target_length", "source_length"]}
        outputs = {**{name: detail[name] for name in names}, **weights}
        attention_map = {
            "rows": "target_pieces",
            "columns": "source_pieces",
            "weights": "cross_heads",
        }
        result["signatures"]["heads"] = {"inputs": arguments, "outputs": outputs}
        return {**result, "heads": {"signature": "heads", "looks": [attention_map]}}

    def signatures(self) -> dict[str, Any]:
        return {**super().signatures(), "heads": self.heads}

    @tf.function(input_signature=[*_TEXTS, tf.TensorSpec([None], tf.string, name="target")])
    def heads(self, source: tf.Tensor, target: tf.Tensor) -> dict[str, tf.Tensor]:
        # The answer is known: what is given only says that it was asked for.
        result = self.answer(source)
        right = result["alignment"]
        even = tf.ones_like(right) / tf.cast(tf.shape(right)[2], tf.float32)
        layer = tf.stack([right, right[:, ::-1], even], axis=1)
        short = tf.reduce_all(result["source_length"] <= self.longest + 1)
        checks = [
            tf.debugging.assert_equal(target, result["translation"]),
            tf.debugging.Assert(short, ["too many weights: ask fewer or shorter rows"]),
        ]
        with tf.control_dependencies(checks):
            both = tf.stack([layer, layer], axis=1)
        names = ("source_pieces", "source_length", "target_pieces", "target_length")
        return {**{name: result[name] for name in names}, "cross_heads": both}


class Constrained(Reverser):
    """Also takes constraints: the answer is the prefix, the capitals, and the phrases."""

    def contract(self) -> dict[str, Any]:
        contract = super().contract()
        names = ("prefix", "phrases")
        inputs = [{"name": name, "kind": "text", "default": ""} for name in names]
        contract["signatures"]["constrained"] = {
            "inputs": [*contract["inputs"], *inputs],
            "outputs": {"translation": [], "score": []},
        }
        return contract

    def signatures(self) -> dict[str, Any]:
        return {**super().signatures(), "constrained": self.constrained}

    @tf.function(
        input_signature=[
            *_TEXTS,
            tf.TensorSpec([None], tf.string, name="prefix"),
            tf.TensorSpec([None], tf.string, name="phrases"),
        ]
    )
    def constrained(
        self, source: tf.Tensor, prefix: tf.Tensor, phrases: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        out = self.answer(source)
        text = tf.strings.join([prefix, out["translation"], phrases], "|")
        return {"translation": text, "score": out["score"]}


class OneRow(Reverser):
    """Also has a signature for a batch of one row."""

    def signatures(self) -> dict[str, Any]:
        return {**super().signatures(), "one_row": self.one_row}

    @tf.function(input_signature=[tf.TensorSpec([1], tf.string, name="source")])
    def one_row(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"translation": self.answer(source)["translation"]}


class TokenizingReverser(Reverser):
    """Takes its texts through a tokenizer of TensorFlow Text and back before it reverses them."""

    def __init__(self, tokenizer: Any, back: Callable[[Any], Any]):
        super().__init__()
        self.tokenizer = tokenizer
        self.back = back

    def answer(self, source: tf.Tensor) -> dict[str, tf.Tensor]:
        return super().answer(self.back(self.tokenizer.tokenize(source)))


def save(
    model: Any, path: Path, align: bool = True, contract: Mapping[str, Any] | None = None
) -> Path:
    """Exports a fake model with its contract, or with another one.

    Equal models are traced and exported once in a run of the tests, because that takes a second.
    Without ``align`` that signature is left out of the model, though its contract has it.
    """
    signatures = model.signatures()
    if not align:
        del signatures["align"]

    def export(folder: Path) -> None:
        tf.saved_model.save(model, str(folder), signatures=signatures)

    state = _state(model)
    if shared_folders.current is None or state is None:
        export(path)
    else:
        digest = hashlib.sha256(json.dumps([state, align]).encode()).hexdigest()
        shared_folders.current.copy(f"fake-{digest}", export, path)
    file = path / CONTRACT
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(model.contract() if contract is None else contract))
    return path


def _state(model: tf.Module) -> dict[str, Any] | None:
    """The class of a fake model and its attributes, or None if one of them has no simple value."""
    kind = type(model)
    state: dict[str, Any] = {"class": f"{kind.__module__}:{kind.__qualname__}"}
    if "<locals>" in kind.__qualname__:
        return None  # the class may depend on variables of a function
    for name, value in vars(model).items():
        if isinstance(value, tf.Variable):
            state[name] = value.numpy().tolist()
        elif value is None or isinstance(value, str | int | float):
            state[name] = value
        elif not name.startswith("_"):  # such attributes of `tf.Module` do not change the graph
            return None
    return state


def sentencepiece_model() -> Reverser:
    """A fake model with a SentencePiece tokenizer in its graph, as ours have."""
    import sentencepiece
    import tensorflow_text

    proto = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["abc def", "the cat sat", "on a mat"]),
        model_writer=proto,
        model_type="char",
        vocab_size=20,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    tokenizer = tensorflow_text.SentencepieceTokenizer(proto.getvalue())
    return TokenizingReverser(tokenizer, tokenizer.detokenize)


def whitespace_model() -> Reverser:
    """A fake model with an operation that old model servers do not have."""
    import tensorflow_text

    tokenizer = tensorflow_text.WhitespaceTokenizer()
    return TokenizingReverser(
        tokenizer, lambda words: tf.strings.reduce_join(words, axis=1, separator=" ")
    )


def artifact(kind: type[Artifact], path: Path) -> Artifact:
    """An artifact of TFX at a folder, which is made."""
    path.mkdir(parents=True, exist_ok=True)
    created = kind()
    created.uri = str(path)
    return created


def examples(
    path: Path, shards: Sequence[Sequence[dict[str, Any]]], split: str = "test"
) -> Artifact:
    """An Examples artifact of which a split has the given rows in the given files."""
    folder = path / f"Split-{split}"
    folder.mkdir(parents=True)
    options = tf.io.TFRecordOptions(compression_type="GZIP")
    for index, rows in enumerate(shards):
        name = f"data_tfrecord-{index:05d}-of-{len(shards):05d}.gz"
        with tf.io.TFRecordWriter(str(folder / name), options) as writer:
            for line, row in enumerate(rows, 1):
                place = {"file": f"file {index}", "line": line} if split == "test" else {}
                writer.write(_example({**place, **row}).SerializeToString())
    created = artifact(standard_artifacts.Examples, path)
    created.split_names = json.dumps(["train", "eval", split])
    return created


def _example(row: dict[str, Any]) -> tf.train.Example:
    """A row as CorpusGen writes it; points are flat already."""
    features = tf.train.Features()
    for name, value in row.items():
        for cell in value if isinstance(value, list) else [value]:
            if isinstance(cell, int):
                features.feature[name].int64_list.value.append(cell)
            elif isinstance(cell, float):
                features.feature[name].float_list.value.append(cell)
            else:
                encoded = cell if isinstance(cell, bytes) else cell.encode()
                features.feature[name].bytes_list.value.append(encoded)
        if value == []:
            features.feature[name].float_list.SetInParent()
    return tf.train.Example(features=features)
