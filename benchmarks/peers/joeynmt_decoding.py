"""Decode with JoeyNMT and the weights of a model of Regard, and measure the times.

`benchmarks/decoding.py` starts this process in JoeyNMT's environment with a request as JSON on
standard input. The result is one line of JSON.

Search, pre- and postprocessing are JoeyNMT's, as in its `translate`. Two differences are adapted to
these weights: the epsilon of layer normalization, and the bias of the softmax layer, which JoeyNMT
lacks.
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

from benchmarks import latency
from benchmarks.peers.joeynmt_training import network


def main() -> None:
    """Decode, and print the result."""
    request = json.load(sys.stdin)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["threads"]])
    torch.set_num_threads(request["threads"])
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        predict_texts = load(request, Path(folder))
    loading = time.perf_counter() - start
    result = latency.measure(predict_texts, request["texts"], request["passes"], request["single"])
    print(json.dumps({**result, "loading": loading}))


def load(request: Mapping[str, Any], folder: Path) -> latency.PredictFn:
    """Load the model, and return its beam search with the output limit of Regard."""
    args = parse_global_args(configuration(request, folder), rank=0, mode="translate")
    source, target, _, _, data = load_data(args.data, ["stream"])
    model = build_model(args.model, source, target)
    load_weights(model, Path(request["model"]))
    tokenizer = data.tokenizer["en"]

    def predict_texts(texts: Sequence[str]) -> list[str]:
        data.reset_cache()
        for text in texts:
            data.set_item(text)
        longest = max(len(tokenizer(text)) for text in texts)
        limit = int(request["length_factor"] * longest) + request["length_offset"]
        options = args.test._replace(max_output_length=limit, batch_size=len(texts))
        _, _, outputs, _, _, _ = predict(
            model, data, args.device, args.n_gpu, args=options, autocast=args.autocast
        )
        return outputs

    return latency.in_batches(predict_texts, request["batch"])


def load_weights(model: torch.nn.Module, path: Path) -> None:
    """Load all weights, and adapt the model to them."""
    with np.load(path) as file:
        weights = {name: torch.from_numpy(file[name]) for name in file.files}
    vocabulary, width = weights["decoder.output_layer.weight"].shape
    model.decoder.output_layer = torch.nn.Linear(width, vocabulary)
    missing, unknown = model.load_state_dict(weights, strict=False)
    missing = [name for name in missing if not name.endswith(".pe.pe")]  # sinusoids, not trained
    if missing or unknown:
        raise ValueError(f"missing weights: {missing}; unknown weights: {unknown}")
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-5


def configuration(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Convert the request to a configuration of JoeyNMT."""
    side = {
        "level": "bpe",
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": request["tokenizer"]},
        "voc_file": request["vocabulary"],
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
