"""Stands in for the worker of one model: tells events and leaves artifacts, without TFX.

The file that ``FAKE_HOW`` names says for each label how it goes: ``ok`` (the default), ``user`` (a
failed node), ``crash``, ``slow`` (until it is asked to stop). Each start adds a line to the
file's neighbour ``started.txt``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import yaml

from components import events

run = Path(sys.argv[1])
config = yaml.safe_load((run / "config.yaml").read_text())
artifacts = run.parents[1] / "fake-artifacts"
label = config["name"].split("-", 1)[1]
how_file = Path(os.environ["FAKE_HOW"])
how = json.loads(how_file.read_text()).get(label, "ok")
with open(how_file.with_name("started.txt"), "a") as started:
    threads = os.environ.get("TF_NUM_INTRAOP_THREADS", "-")
    started.write(f"{label} {threads} {time.time()}\n")


def leave(folder: str, name: str, content: dict) -> str:
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
training |= {"finished": "max_epochs: 3", "history": history, "best_step": 30}
node("Trainer", model_run=leave("run", "training.json", training), model="/m")
decoding = {"rows": 4, "sentences_per_second": 12.5, "batch_size": 64, "device": "CPU"}
node("Predictor", predictions=leave("predictions", "predictions.json", decoding))
bleu = {"name": "bleu", "label": "BLEU", "value": 20.0 + units, "signature": "nrefs:1|tok:13a"}
leave("evaluation", "metrics.json", {"rows": 4, "metrics": {"bleu": {**bleu, "scale": 100.0}}})
buckets = [
    {"from": 0, "to": 10, "rows": 3, "candidate": {"bleu": 25.0 + units}},
    {"from": 11, "to": None, "rows": 1, "candidate": {"bleu": 5.0 + units}},
]
by_length = {"unit": "source pieces", "buckets": buckets}
node("Evaluator", evaluation=leave("evaluation", "by_length.json", by_length))
