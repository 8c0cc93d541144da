"""Simulates the worker of one model: emits events and writes artifacts, without TFX.

The file in ``FAKE_HOW`` has the behaviour of each label: ``ok`` (the default), ``user`` (a failed
node), ``crash``, ``slow`` (until it is interrupted). Each start appends a line to ``started.txt``
in the same folder.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from regard.core import events
from regard.core.processes import end_with_parent
from regard.core.yaml_text import from_yaml

end_with_parent()
run = Path(sys.argv[1])
config = from_yaml((run / "config.yaml").read_text())
artifacts = run.parents[1] / "fake-artifacts"
label = config["name"].split("-", 1)[1]
how_file = Path(os.environ["FAKE_HOW"])
how = json.loads(how_file.read_text()).get(label, "ok")
with open(how_file.with_name("started.txt"), "a") as started:
    started.write(f"{label} {os.environ.get('TF_NUM_INTRAOP_THREADS', '-')}\n")


def write_artifact(folder: str, name: str, content: dict) -> str:
    (artifacts / folder).mkdir(parents=True, exist_ok=True)
    (artifacts / folder / name).write_text(json.dumps(content))
    return str(artifacts / folder)


def node(name: str, **outputs: str) -> None:
    events.emit("node", node=name, state="done", seconds=1.0, outputs=outputs)


events.emit("plan", nodes=["CorpusGen", "Trainer", "Predictor", "Evaluator"])
node("CorpusGen", examples="/e")
events.emit("node", node="Trainer", state="running")
events.emit("progress", node="Trainer", text="epoch 2, loss 1.25", fraction=0.5)
if how == "slow":
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    time.sleep(60)
if how == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
if how == "user":
    error = {"error": "the batch is too large", "where": "training.batch_tokens"}
    events.emit("node", node="Trainer", state="failed", seconds=1.0, user=True, **error)
    sys.exit(2)

units = config["model"]["encoder"]["units"]
history = [
    {"step": 10 * n, "epoch": n, "seconds": 5.0 * n, "perplexity": 100.0 / n / units}
    for n in (1, 2, 3)
]
training = {"parameters": 1000 * units, "steps": 30, "epochs": 3, "seconds": 15.0}
training |= {"stop_reason": "max_epochs: 3", "history": history, "best_step": 30}
node("Trainer", model_run=write_artifact("run", "training.json", training), model="/m")
decoding = {"rows": 4, "sentences_per_second": 12.5, "batch_size": 64, "device": "CPU"}
node("Predictor", predictions=write_artifact("predictions", "predictions.json", decoding))
bleu = {"name": "bleu", "label": "BLEU", "value": 20.0 + units, "signature": "nrefs:1|tok:13a"}
write_artifact(
    "evaluation", "metrics.json", {"rows": 4, "metrics": {"bleu": {**bleu, "scale": 100.0}}}
)
buckets = [
    {"low": 0, "high": 10, "rows": 3, "scores": {"candidate": {"bleu": 25.0 + units}}},
    {"low": 11, "high": None, "rows": 1, "scores": {"candidate": {"bleu": 5.0 + units}}},
]
by_length = {"unit": "source tokens", "buckets": buckets}
node("Evaluator", evaluation=write_artifact("evaluation", "by_length.json", by_length))
