"""Write small models of random weights as JoeyNMT saves them, and what it computes with them.

    benchmarks/peers/.venv/bin/python -m benchmarks.peers.joeynmt_models
    benchmarks/peers/.venv/bin/python -m benchmarks.peers.joeynmt_models FOLDER --only post-untied

``.venv`` is the environment of `benchmarks.peers.install`. The default folder is that of the tests
of `regard import joeynmt`. Each model is a folder that JoeyNMT's training has written, after one
epoch on invented sentences. Then the weights are replaced by random ones, so that every part has an
effect, and JoeyNMT saves its checkpoint again. Positions are stored for 64 instead of 5,000 tokens,
which saves 0.3 MB. Of the other files these are kept:

- ``config.yaml``, ``best.ckpt``, ``src_vocab.txt``, ``trg_vocab.txt`` and the SentencePiece models.
- ``expected.npz``: ``source`` [8, source], token ids with EOS and padding; ``encoder`` [8, source,
  depth], the states; ``target`` [8, target], ids that the decoder reads; ``logits`` [8, target,
  vocabulary].
- ``expected.json.gz``: ``sentences``, and their outputs, ``greedy`` and ``beam``, as `translate`
  prints them.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import sentencepiece
import torch
import yaml
from joeynmt.config import parse_global_args, set_validation_args
from joeynmt.data import load_data
from joeynmt.model import Model
from joeynmt.prediction import predict, prepare
from joeynmt.search import search
from joeynmt.training import TrainManager
from joeynmt.transformer_layers import PositionalEncoding

from benchmarks.peers.huggingface_text import Language, tokens_of, train_sentencepiece

FIXTURES = Path(__file__).resolve().parents[2] / "tests/components/importing/joeynmt"
_SENTENCES, _EXAMPLES, _DECODER_LENGTH, _POSITIONS = 200, 8, 5, 64
_TESTING = {"beam_size": 4, "beam_alpha": 1.0, "max_output_length": 20, "batch_size": 1}
# Differences from a model with pre-norm and one matrix of all tokens.
MODELS: dict[str, dict[str, Any]] = {
    "pre-tied": {"layer_norm": "pre", "tied": (True, True), "scale": True, "activation": "relu"},
    "post-untied": {
        "layer_norm": "post",
        "tied": (False, False),
        "scale": False,
        "activation": "gelu",
    },
    "post-softmax": {
        "layer_norm": "post",
        "tied": (False, True),
        "scale": True,
        "activation": "swish",
        "testing": {"generate_unk": False},
        "is_restricted": True,
    },
    "pre-embeddings": {
        "layer_norm": "pre",
        "tied": (True, False),
        "scale": True,
        "activation": "relu",
    },
}


def main() -> None:
    """Write the folders."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=FIXTURES)
    parser.add_argument("--only", nargs="*", default=list(MODELS), help="names of models")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    small = functools.partial(PositionalEncoding, max_len=_POSITIONS)
    for name in arguments.only:
        with (
            tempfile.TemporaryDirectory() as work,
            mock.patch("joeynmt.encoders.PositionalEncoding", small),
            mock.patch("joeynmt.decoders.PositionalEncoding", small),
        ):
            summary = write_model(arguments.folder / name, MODELS[name], Path(work))
        print(f"{name}: {summary}")


def write_model(folder: Path, options: dict[str, Any], work: Path) -> str:
    """Train, randomize and save a model, write its outputs, and return a summary.

    Args:
        folder: the folder, which is replaced.
        options: an entry of ``MODELS``.
        work: a folder for everything else.
    """
    configuration = write_inputs(work, options)
    args = parse_global_args(configuration, rank=0, mode="train")
    Path(args.model_dir).mkdir()
    model, train_data, dev_data, _ = prepare(args, rank=0, mode="train")
    manager = TrainManager(
        rank=0,
        model=model,
        model_dir=args.model_dir,
        device=args.device,
        n_gpu=args.n_gpu,
        num_workers=args.num_workers,
        autocast=args.autocast,
        seed=args.seed,
        train_args=args.train,
        dev_args=set_validation_args(args.test),
    )
    manager.train_and_validate(train_data=train_data, valid_data=dev_data)
    randomize_until_diverse(model, configuration)
    manager._save_checkpoint(new_best=False, score=0.0)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model_dir = Path(args.model_dir)
    shutil.copyfile(model_dir / "latest.ckpt", folder / "best.ckpt")  # it is a link
    for path in (*model_dir.glob("*_vocab.txt"), *model_dir.glob("*.model")):
        shutil.copyfile(path, folder / path.name)
    text = (work / "config.yaml").read_text(encoding="utf-8").replace(str(work), "/data")
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    return write_expected(folder, model.eval(), configuration)


def write_inputs(work: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Write the files that a training reads, and return its configuration."""
    languages = {"src": Language("north"), "trg": Language("south")}
    texts = {side: language.sentences(60, "training") for side, language in languages.items()}
    is_joint = options["tied"][0]
    data: dict[str, Any] = {"train": str(work / "train"), "dev": str(work / "train")}
    for side in ("src", "trg"):
        (work / f"train.{side}").write_text("\n".join(texts[side]) + "\n", encoding="utf-8")
        model = work / ("joint.model" if is_joint else f"{side}.model")
        lines = [*texts["src"], *texts["trg"]] if is_joint else texts[side]
        train_sentencepiece(model, lines, 60 if is_joint else 45, "bpe" if is_joint else "unigram")
        vocabulary = model.with_suffix(".txt")
        tokens = tokens_of(model)
        if options.get("is_restricted"):  # as with voc_min_freq: SentencePiece avoids the others
            longer = [token for token in tokens if len(token) > 1 and not token.startswith("<")]
            tokens = [token for token in tokens if token not in longer[::2]]
        vocabulary.write_text("\n".join(tokens) + "\n", encoding="utf-8")
        data[side] = {
            "lang": side,
            "level": "bpe",
            "lowercase": False,
            "normalize": False,
            "voc_file": str(vocabulary),
            "tokenizer_type": "sentencepiece",
            "tokenizer_cfg": {"model_file": str(model), "pretokenizer": "none"},
        }
    part = {
        "type": "transformer",
        "hidden_size": 8,
        "ff_size": 12,
        "num_heads": 2,
        "dropout": 0.1,
        "embeddings": {"embedding_dim": 8, "scale": options["scale"], "dropout": 0.0},
        "layer_norm": options["layer_norm"],
        "activation": options["activation"],
    }
    tied_embeddings, tied_softmax = options["tied"]
    configuration = {
        "name": "random",
        "joeynmt_version": "2.3.0",
        "model_dir": str(work / "model"),
        "use_cuda": False,
        "random_seed": 1,
        "data": {**data, "dataset_type": "plain"},
        "testing": {**_TESTING, **options.get("testing", {})},
        "training": {
            "optimizer": "adam",
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": 10,
            "learning_rate": 0.001,
            "batch_size": 60,
            "batch_type": "sentence",
            "epochs": 1,
            "validation_freq": 100,
            "logging_freq": 100,
        },
        "model": {
            "initializer": "xavier_uniform",
            "tied_embeddings": tied_embeddings,
            "tied_softmax": tied_softmax,
            "encoder": {**part, "num_layers": 2},
            "decoder": {**part, "num_layers": 1},
        },
    }
    (work / "config.yaml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    return configuration


def randomize_until_diverse(model: Model, configuration: dict[str, Any]) -> None:
    """Replace the weights by the first random ones whose outputs differ and end."""
    sentences = Language("north").sentences(_SENTENCES, "test")
    limit = _TESTING["max_output_length"]
    for seed in range(200):
        randomize(model.eval(), seed)
        some = translate(model, configuration, sentences[:40], beams=1)
        if len(set(some)) > 20 and sum(len(output) < limit for output in some) > 25:
            return
    raise SystemExit("no seed has outputs that differ and end")


def randomize(model: Model, seed: int) -> None:
    """Replace the weights, so that attention, biases and normalizations have an effect."""
    generator = torch.Generator().manual_seed(seed)

    def normal(tensor: torch.Tensor, deviation: float, mean: float = 0.0) -> None:
        tensor.data.normal_(mean, deviation, generator=generator)

    for name, parameter in sorted(model.named_parameters()):
        if "embed" in name or name == "decoder.output_layer.weight":
            normal(parameter, 0.7)
            parameter.data[model.pad_index] = 0
            parameter.data[model.eos_index] *= 2
        elif "layer_norm.weight" in name:
            normal(parameter, 0.2, mean=1.0)
        elif name.endswith("bias"):
            normal(parameter, 0.2)
        elif "src_trg_att" in name:
            normal(parameter, 3.0 / parameter.shape[1] ** 0.5)
        else:
            normal(parameter, 1.5 / parameter.shape[1] ** 0.5)


def write_expected(folder: Path, model: Model, configuration: dict[str, Any]) -> str:
    """Write what JoeyNMT computes with a model, and return a summary."""
    sentences = Language("north").sentences(_SENTENCES, "test")
    outputs = {
        name: translate(model, configuration, sentences, beams)
        for name, beams in (("greedy", 1), ("beam", _TESTING["beam_size"]))
    }
    text = json.dumps({"sentences": sentences, **outputs}, ensure_ascii=False)
    (folder / "expected.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    np.savez_compressed(folder / "expected.npz", **states(folder, model, sentences))
    different = len(set(outputs["beam"]))
    equal = sum(a == b for a, b in zip(outputs["greedy"], outputs["beam"], strict=True))
    sizes = [len(output) for output in outputs["greedy"]]
    return (
        f"{different} different outputs of {min(sizes)} to {max(sizes)} characters, mean "
        f"{np.mean(sizes):.1f}; {equal} equal greedy and beam"
    )


def translate(
    model: Model,
    configuration: dict[str, Any],
    sentences: Sequence[str],
    beams: int,
) -> list[str]:
    """Return the outputs for sentences, computed as `joeynmt translate` does.

    Only the minimum of one token, for which JoeyNMT has no setting, is left out.
    """
    values = {**configuration, "data": {**configuration["data"], "dataset_type": "stream"}}
    values["data"] |= {"test": "-"}
    args = parse_global_args(values, rank=0, mode="translate")
    _, _, _, _, data = load_data(args.data, ["stream"])
    for sentence in sentences:
        data.set_item(sentence)
    options = args.test._replace(beam_size=beams)
    # `predict` does not pass on testing.min_output_length.
    without_minimum = functools.partial(search, min_output_length=0)
    with mock.patch("joeynmt.prediction.search", without_minimum):
        result = predict(model, data, args.device, args.n_gpu, args=options, autocast=args.autocast)
    return list(result[2])


def states(folder: Path, model: Model, sentences: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the arrays of ``expected.npz``."""
    path = next(path for path in sorted(folder.glob("*.model")) if path.name != "trg.model")
    tokenizer = sentencepiece.SentencePieceProcessor(str(path))
    tokens = [tokenizer.encode(sentence, out_type=str) for sentence in sentences[:_EXAMPLES]]
    rows, lengths, _ = model.src_vocab.sentences_to_ids(tokens, bos=False, eos=True)
    source = torch.tensor(rows)
    mask = (source != model.pad_index).unsqueeze(1)
    generator = torch.Generator().manual_seed(1)
    size = (_EXAMPLES, _DECODER_LENGTH)
    target = torch.randint(4, len(model.trg_vocab), size, generator=generator)
    target[:, 0] = model.bos_index
    with torch.no_grad():
        encoder, _, _, _ = model(
            return_type="encode", src=source, src_length=torch.tensor(lengths), src_mask=mask
        )
        logits, _, _, _ = model(
            return_type="decode",
            trg_input=target,
            encoder_output=encoder,
            encoder_hidden=None,
            src_mask=mask,
            unroll_steps=None,
            decoder_hidden=None,
            trg_mask=mask.new_ones([1, 1, 1]),
        )
    return {
        "source": source.numpy().astype(np.int32),
        "encoder": encoder.numpy(),
        "target": target.numpy().astype(np.int32),
        "logits": logits.numpy(),
    }


if __name__ == "__main__":
    main()
