"""Stands in for the worker process: tells events as it would, without TFX.

Its first argument says how it ends: ``ok``, ``slow`` (until it is asked to stop), ``deaf`` (does
not stop when asked), ``user`` (a failed node), ``crash``, ``not-blessed``, ``watch`` (slow, and
ends with its parent, as the real one does).
"""

import os
import signal
import sys
import tempfile
import time

from regard.core import events
from regard.core.processes import end_with_parent

how = sys.argv[1]
if how == "watch":
    end_with_parent()
events.emit("progress", node="", text="importing")
events.emit("origin", data_fingerprint="f00d", parent="2")
events.emit("plan", nodes=["CorpusGen", "Trainer", "Pusher"])
events.emit("node", node="CorpusGen", state="running")
events.emit("node", node="CorpusGen", state="cached", seconds=0.1, outputs={"examples": "/e"})
events.emit("node", node="Trainer", state="running")
events.emit("progress", node="Trainer", text="epoch 2, loss 1.25", fraction=0.5)
print(f"worker {os.getpid()} is busy: {how}", flush=True)
with tempfile.NamedTemporaryFile(prefix="left-by-", delete=False) as left:  # as libraries do
    print(f"left {left.name}", flush=True)

if how == "slow":

    def stop(*_: object) -> None:
        sys.exit(130)

    signal.signal(signal.SIGINT, stop)
if how == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
if how in ("slow", "deaf", "watch"):
    time.sleep(60)
if how == "user":
    events.emit(
        "node", node="Trainer", state="failed", seconds=1.0, user=True,
        error="the batch is too large", where="training.batch_tokens", remedy="Make it smaller.",
        code="configuration",
    )  # fmt: skip
    sys.exit(2)
if how == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
trained = {"seconds": 2.0, "peak_bytes": 7 << 30}
events.emit("node", node="Trainer", state="done", **trained, outputs={"model": "/m"})
events.emit("node", node="Pusher", state="running")
pushed = {"pushed": 1, "pushed_version": "3", "pushed_destination": "/r/tiny/3"}
if how == "not-blessed":
    pushed = {"pushed": 0}
events.emit(
    "node", node="Pusher", state="done", seconds=0.1,
    outputs={"pushed_model": "/p"}, properties={"pushed_model": pushed},
)  # fmt: skip
