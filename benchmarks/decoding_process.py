"""Decode with a SavedModel of Regard or with CTranslate2 in this process, and measure the times.

`benchmarks/decoding.py` starts this process with a request as JSON on standard input. The result is
one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import latency


def main() -> None:
    """Decode, and print the result."""
    request = json.load(sys.stdin)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["threads"]])
    load = {"regard": regard, "ctranslate2": ctranslate2}[request["program"]]
    start = time.perf_counter()
    predict = load(request)
    loading = time.perf_counter() - start
    result = latency.measure(predict, request["texts"], request["passes"], request["single"])
    print(json.dumps({**result, "loading": loading}))


def regard(request: Mapping[str, Any]) -> latency.PredictFn:
    """Load a SavedModel, and return its default signature, as `regard predict` calls it."""
    from regard.serving import saved_model

    os.environ.pop("TF_NUM_INTRAOP_THREADS", None)  # a session's own setting applies
    model = saved_model.load(request["model"])

    def predict(texts: Sequence[str]) -> list[str]:
        rows = [{"source": text} for text in texts]
        return [prediction.hypothesis for prediction in model.predict("serving_default", rows)]

    return latency.in_batches(predict, request["batch"] * request["threads"])  # one per thread


def ctranslate2(request: Mapping[str, Any]) -> latency.PredictFn:
    """Load a CTranslate2 model with its tokenizers; CTranslate2 forms batches itself."""
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

    def predict(texts: Sequence[str]) -> list[str]:
        tokens = source.encode(list(texts), out_type=str)
        longest = max(map(len, tokens))
        limit = int(request["length_factor"] * longest) + request["length_offset"]
        results = translator.translate_batch(
            tokens,
            beam_size=request["beam_size"],
            length_penalty=request["ctranslate2_length_penalty"],
            max_decoding_length=limit,
            max_batch_size=request["batch"],
        )
        return target.decode([result.hypotheses[0] for result in results])

    return predict


if __name__ == "__main__":
    main()
