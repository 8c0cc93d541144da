"""Write small models of random weights as OpenNMT-tf saves them, and what it computes with them.

    python3.10 -m venv benchmarks/peers/.venv-opennmt-tf
    cd benchmarks/peers && .venv-opennmt-tf/bin/pip install -r requirements-opennmt-tf.txt && cd -
    benchmarks/peers/.venv-opennmt-tf/bin/python -m benchmarks.peers.opennmt_tf_models
    .../python -m benchmarks.peers.opennmt_tf_models FOLDER --only pre

For newer versions of Python there is no TensorFlow that OpenNMT-tf supports. The default folder is
that of the tests of `regard import opennmt-tf`. Each model is trained for one step on invented
sentences. Then random numbers replace the weights, so that every part has an effect, and OpenNMT-tf
saves its checkpoint again. A folder has

- ``checkpoint``, ``ckpt-2.index`` and ``ckpt-2.data-00000-of-00001``;
- ``source.model``, ``source.vocab``, ``target.model``, ``target.vocab``, or ``shared.model`` and
  ``shared.vocab``: the SentencePiece models, and the vocabularies that the model reads;
- ``expected.npz``: ``source`` [8, source], token ids with padding (0), and their ``lengths`` [8];
  ``encoder`` [8, source, depth], the states; ``target`` [8, target], ids that the decoder reads;
  ``logits`` [8, target, vocabulary];
- ``expected.json.gz``: ``sentences``, and for each the tokens of its output, ``greedy`` and
  ``beam``, of which a length of 20 is the maximum.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece  # before TensorFlow: the other order ends with a segmentation fault

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import opennmt
import tensorflow as tf
from opennmt.models import EmbeddingsSharingLevel, Model

from benchmarks.peers.huggingface_text import Language, tokens_of, train_sentencepiece

FIXTURES = Path(__file__).resolve().parents[2] / "tests/components/importing/opennmt_tf"
_SENTENCES, _EXAMPLES, _DECODER_LENGTH, _MAX_LENGTH = 200, 8, 5, 20
_SPECIAL = ("<blank>", "<s>", "</s>")
_SIZES = {"num_units": 8, "num_heads": 2, "ffn_inner_dim": 12}
MODELS: dict[str, dict[str, Any]] = {
    "pre": {"num_layers": (2, 1)},
    "post-shared": {
        "num_layers": (1, 2),
        "pre_norm": False,
        "share_embeddings": EmbeddingsSharingLevel.ALL,
    },
    "relative-target": {
        "num_layers": (2, 1),
        "position_encoder_class": None,
        "maximum_relative_position": 3,
        "share_embeddings": EmbeddingsSharingLevel.TARGET,
    },
    "pre-end": {"num_layers": (1, 1), "output_layer_bias": False},
}
_READ_END = ("pre-end",)


def main() -> None:
    """Write the folders."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=FIXTURES)
    parser.add_argument("--only", nargs="*", default=list(MODELS), help="names of models")
    arguments = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    for name in arguments.only:
        with tempfile.TemporaryDirectory() as work:
            print(f"{name}: {write_model(arguments.folder / name, name, Path(work))}")


def write_model(folder: Path, name: str, work: Path) -> str:
    """Train, randomize and save a model, write its outputs, and return a summary.

    Args:
        folder: the folder, which is replaced.
        name: a key of ``MODELS``.
        work: a folder for everything else.
    """
    options = MODELS[name]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    is_shared = options.get("share_embeddings") == EmbeddingsSharingLevel.ALL
    write_tokenizers(folder, is_shared)
    sides = {side: "shared" if is_shared else side for side in ("source", "target")}
    data: dict[str, Any] = {
        f"{side}_vocabulary": str(folder / f"{file}.vocab") for side, file in sides.items()
    }
    for side, language in (("source", "north"), ("target", "south")):
        tokenizer = sentencepiece.SentencePieceProcessor(str(folder / f"{sides[side]}.model"))
        lines = Language(language).sentences(20, "training")
        text = "\n".join(" ".join(tokenizer.encode(line, out_type=str)) for line in lines)
        (work / side).write_text(text + "\n", encoding="utf-8")
    data |= {"train_features_file": str(work / "source"), "train_labels_file": str(work / "target")}
    if name in _READ_END:
        data["source_sequence_controls"] = {"start": False, "end": True}
    params = {"optimizer": "Adam", "learning_rate": 0.001, "maximum_decoding_length": _MAX_LENGTH}
    config = {
        "model_dir": str(work / "run"),
        "data": data,
        "params": params,
        "train": {"batch_size": 20, "max_step": 1, "save_checkpoints_steps": 1},
    }
    tf.keras.utils.set_random_seed(1)
    model = opennmt.models.Transformer(**_SIZES, **options)
    opennmt.Runner(model, config).train()
    model = opennmt.models.Transformer(**_SIZES, **options)
    model.initialize(data, params)
    optimizer = model.get_optimizer()
    checkpoint = opennmt.utils.checkpoint.Checkpoint(
        model, optimizer, model_dir=str(work / "run"), keep_checkpoint_max=1
    )
    model.create_variables(optimizer=optimizer)
    checkpoint.restore()
    randomize_until_diverse(model, folder, sides["source"])
    checkpoint.save(step=2)
    for path in (*(work / "run").glob("ckpt-2.*"), work / "run/checkpoint"):
        shutil.copyfile(path, folder / path.name)
    return write_expected(folder, model, sides["source"])


def write_tokenizers(folder: Path, is_shared: bool) -> None:
    """Write SentencePiece models, and vocabularies as `onmt-build-vocab` does."""
    texts = {
        "source": Language("north").sentences(60, "training"),
        "target": Language("south").sentences(60, "training"),
    }
    if is_shared:
        texts = {"shared": [*texts["source"], *texts["target"]]}
    for name, lines in texts.items():
        model = folder / f"{name}.model"
        train_sentencepiece(model, lines, 60 if is_shared else 45, "unigram")
        tokens = [token for token in tokens_of(model) if not token.startswith("<")]
        text = "\n".join([*_SPECIAL, *tokens[:-2]]) + "\n"  # without two: they are unknown
        (folder / f"{name}.vocab").write_text(text, encoding="utf-8")


def randomize_until_diverse(model: Model, folder: Path, source: str) -> None:
    """Replace the weights by the first random ones whose outputs differ and end."""
    sentences = Language("north").sentences(_SENTENCES, "test")
    tokenizer = sentencepiece.SentencePieceProcessor(str(folder / f"{source}.model"))
    tokens = [tokenizer.encode(sentence, out_type=str) for sentence in sentences[:40]]
    for seed in range(200):
        randomize(model, seed)
        outputs = translate(model, tokens, beams=1)
        ended = sum(0 < len(output) < _MAX_LENGTH for output in outputs)
        if len(set(map(tuple, outputs))) > 12 and ended > 15:
            return
    raise SystemExit(f"{folder.name}: no seed has outputs that differ and end")


def randomize(model: Model, seed: int) -> None:
    """Replace the weights, so that attention, biases and normalizations have an effect."""
    chance = np.random.default_rng(seed)
    cross = {
        id(variable)
        for layer in model.decoder.layers
        for variable in layer.attention[0].layer.trainable_variables
    }
    for variable in sorted(model.trainable_variables, key=lambda variable: variable.name):
        name, shape = variable.name, tuple(variable.shape)
        if "embedding" in name:
            value = chance.normal(0, 0.5, shape)
            value[2] *= 2
        elif shape == (_SIZES["num_units"], model.labels_inputter.vocabulary_size):
            value = chance.normal(0, 0.7, shape)
            value[:, 2] *= 2
            value[:, :2] = 0
        elif "gamma" in name:
            value = chance.normal(1, 0.2, shape)
        elif "relative_position" in name:
            value = chance.normal(0, 1, shape)
        elif len(shape) == 1:
            value = chance.normal(0, 0.2, shape)
        else:
            scale = 4 if id(variable) in cross else 1.5
            value = chance.normal(0, scale / shape[0] ** 0.5, shape)
        if shape[-1:] == (model.labels_inputter.vocabulary_size,) and len(shape) == 1:
            value[:2] = -9.0  # training never shows <blank> and <s> as outputs
        variable.assign(value)


def write_expected(folder: Path, model: Model, source: str) -> str:
    """Write what OpenNMT-tf computes with a model, and return a summary."""
    sentences = Language("north").sentences(_SENTENCES, "test")
    tokenizer = sentencepiece.SentencePieceProcessor(str(folder / f"{source}.model"))
    tokens = [tokenizer.encode(sentence, out_type=str) for sentence in sentences]
    outputs = {
        name: translate(model, tokens, beams) for name, beams in (("greedy", 1), ("beam", 4))
    }
    text = json.dumps({"sentences": sentences, **outputs}, ensure_ascii=False)
    (folder / "expected.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    np.savez_compressed(folder / "expected.npz", **states(model, tokens[:_EXAMPLES]))
    sizes = [len(output) for output in outputs["greedy"]]
    different = len({tuple(output) for output in outputs["greedy"]})
    equal = sum(a == b for a, b in zip(outputs["greedy"], outputs["beam"], strict=True))
    return (
        f"{different} different outputs of {min(sizes)} to {max(sizes)} tokens, mean "
        f"{np.mean(sizes):.1f}; {equal} equal greedy and beam"
    )


def _features(model: Model, tokens: Sequence[Sequence[str]]) -> dict[str, tf.Tensor]:
    """Return the inputs of sentences, as `onmt-main infer` reads them from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sentences")
        path.write_text("\n".join(map(" ".join, tokens)) + "\n", encoding="utf-8")
        dataset = model.examples_inputter.make_inference_dataset(str(path), len(tokens))
        features: dict[str, tf.Tensor] = next(iter(dataset))
    return features


def translate(model: Model, tokens: Sequence[Sequence[str]], beams: int) -> list[list[str]]:
    """Return the tokens of the outputs."""
    model.params["beam_width"] = beams
    _, predictions = model(_features(model, tokens))
    rows = zip(
        predictions["tokens"].numpy()[:, 0], predictions["length"].numpy()[:, 0], strict=True
    )
    return [[token.decode() for token in row[:length]] for row, length in rows]


def states(model: Model, tokens: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
    """Return the arrays of ``expected.npz``."""
    features = _features(model, tokens)
    encoder, _, _ = model.encoder(
        model.features_inputter(features), sequence_length=features["length"]
    )
    chance = np.random.default_rng(1)
    size = (len(tokens), _DECODER_LENGTH)
    target = chance.integers(3, model.labels_inputter.vocabulary_size, size)
    target[:, 0] = 1
    lengths = tf.fill([len(tokens)], _DECODER_LENGTH)
    state = model.decoder.initial_state(
        memory=encoder, memory_sequence_length=features["length"], dtype=tf.float32
    )
    inputs = model.labels_inputter({"ids": tf.constant(target), "length": lengths})
    logits, _, _ = model.decoder(inputs, lengths, state=state)
    return {
        "source": features["ids"].numpy().astype(np.int32),
        "lengths": features["length"].numpy().astype(np.int32),
        "encoder": encoder.numpy(),
        "target": target.astype(np.int32),
        "logits": logits.numpy(),
    }


if __name__ == "__main__":
    main()
