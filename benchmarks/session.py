"""Compare Regard's client of TensorFlow's C library with TensorFlow's Python package.

    python benchmarks/session.py registry/quickstart/1 "Friday, 20 November 2026" "3 May 1999"

The programs take turns with each sentence, so that other processes disturb each of them equally.
Prints medians in milliseconds, of single sentences and of batches, for each of three rounds, and
the processor time of loading TensorFlow in a new process. benchmarks/startup.md has the results.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

ROUNDS = 3
SENTENCES = 150  # of a round
BATCHES, BATCH = 8, 32
SIGNATURE, INPUT = "serving_default", "source"
LOADING = {
    "C library": "from regard.serving import session; session.initialize()",
    "Python package": "import tensorflow_text",
}
PredictFn = Callable[[Sequence[str]], Any]


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="folder of a SavedModel with the input `source`")
    parser.add_argument("sentences", nargs="+")
    arguments = parser.parse_args()
    for program, code in LOADING.items():
        print(f"loading, {program}: {processor_seconds(code):.2f} s")
    programs = {
        "C library": c_library(arguments.model),
        "tf.saved_model.load": function(arguments.model),
        "tf.compat.v1.Session": compat_session(arguments.model),
    }
    singles = repeat(arguments.sentences, SENTENCES, 1)
    batches = repeat(arguments.sentences, BATCHES, BATCH)
    measure(programs, singles[:10] + batches[:1])  # a warm-up
    for _ in range(ROUNDS):
        single, batch = measure(programs, singles), measure(programs, batches)
        print(*(f"{name}: {single[name]:.2f}, {batch[name]:.1f}" for name in programs), sep=" · ")


def processor_seconds(code: str) -> float:
    """Return the processor time of a program in a new process, without Python's own start."""
    code = f"import time; start = time.process_time(); {code}; print(time.process_time() - start)"
    output = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT)
    return float(output.split()[-1])


def repeat(sentences: Sequence[str], requests: int, size: int) -> list[list[str]]:
    """Return requests of a size, with the sentences in turn."""
    return [
        [sentences[(size * request + row) % len(sentences)] for row in range(size)]
        for request in range(requests)
    ]


def measure(programs: dict[str, PredictFn], requests: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the median time of a request with each program, in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    for request in requests:
        for name, predict in programs.items():
            start = time.perf_counter()
            predict(request)
            times[name].append(1000 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def c_library(model: str) -> PredictFn:
    """Load a model as `regard serve` does."""
    from regard.serving.session import Session

    session = Session(model)
    return lambda texts: session.run(SIGNATURE, {INPUT: texts})


def function(model: str) -> PredictFn:
    """Load a model as functions of TensorFlow 2, with one thread per operation."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (its operations)

    tf.config.threading.set_intra_op_parallelism_threads(1)
    loaded = tf.saved_model.load(model)

    def predict(texts: Sequence[str]) -> dict[str, Any]:
        outputs = loaded.signatures[SIGNATURE](**{INPUT: tf.constant(texts)})
        return {name: value.numpy() for name, value in outputs.items()}

    return predict


def compat_session(model: str) -> PredictFn:
    """Load a model into a session of TensorFlow 1 with the options of `regard.serving.session`."""
    import numpy as np
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (its operations)

    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    graph = tf.Graph()
    session = tf.compat.v1.Session(graph=graph, config=config)
    with graph.as_default():
        meta_graph = tf.compat.v1.saved_model.loader.load(session, ["serve"], model)
    signature = meta_graph.signature_def[SIGNATURE]
    names = list(signature.outputs)
    fetches = [graph.get_tensor_by_name(signature.outputs[name].name) for name in names]
    feeds = [graph.get_tensor_by_name(signature.inputs[INPUT].name)]
    run = session.make_callable(fetches, feeds)
    return lambda texts: dict(zip(names, run(np.array(texts, object)), strict=True))


if __name__ == "__main__":
    main()
