"""Decodes with a SavedModel of Regard's, or with CTranslate2, in this process, and tells how long.

`benchmarks/decoding.py` starts it with a request as JSON on standard input. It answers with one
line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import asking


def main() -> None:
    """Decodes, and prints."""
    request = json.load(sys.stdin)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["threads"]])
    make = {"regard": regard, "ctranslate2": ctranslate2}[request["program"]]
    began = time.perf_counter()
    answer = make(request)
    loading = time.perf_counter() - began
    found = asking.measure(answer, request["texts"], request["passes"], request["single"])
    print(json.dumps({**found, "loading": loading}))


def regard(request: Mapping[str, Any]) -> asking.Answering:
    """The signature that TensorFlow Serving would ask."""
    import tensorflow as tf

    from serving import saved_model

    model = saved_model.load(request["model"])
    signature, name = model.signature("serving_default"), model.contract["answer"]

    def answer(texts: Sequence[str]) -> list[str]:
        found = signature(source=tf.constant(list(texts)))[name].numpy()
        return [text.decode() for text in found]

    return asking.in_batches(answer, request["batch"])


def ctranslate2(request: Mapping[str, Any]) -> asking.Answering:
    """All texts at once, which CTranslate2 puts into batches by itself; with the tokenizers."""
    import ctranslate2 as engine
    import sentencepiece

    folder = Path(request["model"])
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.model"))
        for side in ("source", "target")
    )
    translator = engine.Translator(
        str(folder),
        device="cpu",
        inter_threads=request["inter_threads"],
        intra_threads=request["threads"] // request["inter_threads"],
    )

    def answer(texts: Sequence[str]) -> list[str]:
        pieces = source.encode(list(texts), out_type=str)
        longest = max(map(len, pieces))
        limit = int(request["length_factor"] * longest) + request["length_offset"]
        found = translator.translate_batch(
            pieces,
            beam_size=request["beam_size"],
            length_penalty=request["own_length_penalty"],
            max_decoding_length=limit,
            max_batch_size=request["batch"],
        )
        return target.decode([one.hypotheses[0] for one in found])

    return answer


if __name__ == "__main__":
    main()
