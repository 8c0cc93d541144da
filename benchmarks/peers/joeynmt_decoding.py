"""Decodes with JoeyNMT and the weights of a model of Regard's, and tells how long.

`benchmarks/decoding.py` starts it in the peers' environment with a request as JSON on standard
input. It answers with one line of JSON.

The search and all before and after it are JoeyNMT's own, as in its `translate`. Two things are put
right for these weights: the epsilon of the layer normalization, and the offset of the softmax
layer, which JoeyNMT's has not.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joeynmt.config import parse_global_args
from joeynmt.data import load_data
from joeynmt.model import build_model
from joeynmt.prediction import predict

from benchmarks import asking
from benchmarks.peers.joeynmt_training import network


def main() -> None:
    """Decodes, and prints."""
    request = json.load(sys.stdin)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["threads"]])
    torch.set_num_threads(request["threads"])
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        answer = joeynmt(request, Path(folder))
    loading = time.perf_counter() - began
    found = asking.measure(answer, request["texts"], request["passes"], request["single"])
    print(json.dumps({**found, "loading": loading}))


def joeynmt(request: Mapping[str, Any], folder: Path) -> asking.Answering:
    """Its beam search of a batch, with the longest answers that Regard would give."""
    args = parse_global_args(configuration(request, folder), rank=0, mode="translate")
    source, target, _, _, data = load_data(args.data, ["stream"])
    model = build_model(args.model, source, target)
    load_weights(model, Path(request["model"]))
    tokenizer = data.tokenizer["en"]

    def answer(texts: Sequence[str]) -> list[str]:
        data.reset_cache()
        for text in texts:
            data.set_item(text)
        longest = max(len(tokenizer(text)) for text in texts)
        limit = int(request["length_factor"] * longest) + request["length_offset"]
        options = args.test._replace(max_output_length=limit, batch_size=len(texts))
        _, _, found, _, _, _ = predict(
            model, data, args.device, args.n_gpu, args=options, autocast=args.autocast
        )
        return found

    return asking.in_batches(answer, request["batch"])


def load_weights(model: torch.nn.Module, path: Path) -> None:
    """Gives the model all its weights, and what goes with them."""
    with np.load(path) as file:
        weights = {name: torch.from_numpy(file[name]) for name in file.files}
    vocabulary, width = weights["decoder.output_layer.weight"].shape
    model.decoder.output_layer = torch.nn.Linear(width, vocabulary)
    missing, unknown = model.load_state_dict(weights, strict=False)
    missing = [name for name in missing if not name.endswith(".pe.pe")]  # sines, not learned
    if missing or unknown:
        raise ValueError(f"no weights for {missing}, no place for {unknown}")
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-5


def configuration(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The request in JoeyNMT's terms."""
    side = {
        "level": "bpe",
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": request["tokenizer"]},
        "voc_file": request["pieces"],
    }
    return {
        "name": "benchmark",
        "model_dir": str(folder),
        "use_cuda": False,
        "data": {
            "test": "-",
            "dataset_type": "stream",
            "src": {**side, "lang": "en"},
            "trg": {**side, "lang": "de"},
        },
        "training": {"batch_size": 1},
        "testing": {
            "beam_size": request["beam_size"],
            "beam_alpha": request["length_penalty"],
            "batch_type": "sentence",
        },
        "model": network(request["settings"]),
    }


if __name__ == "__main__":
    main()
