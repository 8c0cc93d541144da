"""Tokenize a parallel corpus and write Sockeye's training shards in this process.

`benchmarks/ingest.py` starts this process in the peers' environment with a request as JSON on
standard input: the files and the tokenizer of each side, a folder, and the number of processes. The
result is one line of JSON: the seconds of both steps.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import sentencepiece
from sockeye import arguments, prepare_data

_ROWS_PER_CALL = 10_000
_ROWS_PER_SHARD = 100_000  # as in Regard; with Sockeye's default, one process writes one shard


def main() -> None:
    """Run both steps, and print their seconds."""
    request = json.load(sys.stdin)
    start = time.perf_counter()
    with ProcessPoolExecutor(len(request["sides"])) as pool:
        outputs = list(pool.map(tokenize, request["sides"]))
    tokenized = time.perf_counter()
    parser = arguments.ConfigArgumentParser()
    arguments.add_prepare_data_cli_args(parser)
    options = ["--source", outputs[0], "--target", outputs[1], "--quiet"]
    options += ["--output", str(Path(request["folder"], "prepared"))]
    options += ["--num-samples-per-shard", str(_ROWS_PER_SHARD)]
    options += ["--max-processes", str(request["processes"])]
    prepare_data.prepare_data(parser.parse_args(options))
    seconds = {"tokenize": tokenized - start, "prepare": time.perf_counter() - tokenized}
    print(json.dumps(seconds))


def tokenize(side: dict[str, Any]) -> str:
    """Write the tokens of some files to one file, with spaces between them; returns its path."""
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=side["tokenizer"])
    with open(side["output"], "w", encoding="utf-8") as output:
        for path in side["files"]:
            with open(path, encoding="utf-8") as file:
                while lines := list(islice(file, _ROWS_PER_CALL)):
                    rows: Sequence[list[str]] = tokenizer.encode(
                        [line.rstrip("\n") for line in lines], out_type=str, num_threads=1
                    )
                    output.writelines(" ".join(row) + "\n" for row in rows)
    return str(side["output"])


if __name__ == "__main__":
    main()
