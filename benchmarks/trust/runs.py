"""Kill tiny runs with SIGKILL at drawn moments until each is complete, and compare the results.

    python -m benchmarks.trust runs --kills 1000

Each attempt is a run of all nodes: a supervisor and its worker, both forks of a process that has
imported TensorFlow and computed the cache keys, so that a restart is cheap. A kill hits all
processes, only the supervisor, or only the worker. Most moments are drawn over the seconds of a
node that is not complete, usually the first one, others around its end, where outputs are
published, and others before the first node, or after the last one. Sometimes the next attempt
starts while processes of the killed one are alive.

A complete run must have the files of an undisturbed run, with equal bytes wherever two undisturbed
runs have equal bytes (graphs contain numbers of the process that traced them), and leave nothing
else: no temporary files, no processes, no outputs that were not published. The exit status is 1 if
a run differs.

With `--folder`, an interrupted benchmark resumes, and others with another seed share the inputs.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from benchmarks.trust._forked_run import ATTEMPT_SECONDS, END, NAME, START, Attempt, kill, wait_for
from regard.core import events
from regard.core.files import sha256_file
from regard.pipeline.workspace import output_folders

PRELOADED = [
    "benchmarks.trust._preload",
    "tensorflow",
    "keras",
    "tensorboard.summary",
    "matplotlib.backends.backend_agg",
    "regard.pipeline.runs.launch",
    "regard.pipeline.config.config",
    "regard.pipeline.graph",
    "regard.pipeline.tuning.graph",
    "regard.models.tasks.text_to_text",
    "regard.models.tasks.served_text_output",
    "regard.pipeline.runs.worker",
    "regard.pipeline.runners.node_events",
    "regard.pipeline.runners.local",
    "tfx.orchestration.local.local_dag_runner",
    "tfx.dsl.compiler.compiler",
    "tfx.components.trainer.executor",
    "tfx.components.transform.executor",
    "regard.components.trainer.run_fn",
]
CONFIG = """
name: {name}
task: translation
data: {{root: {root}, train: train.tsv, eval: eval.tsv, test: test.tsv}}
tokenizer: {{type: char, vocab_size: 60, vocab_limit: soft}}
model:
  embedding: 12
  encoder: {{type: recurrent, units: 16}}
  decoder: {{type: luong, units: 16}}
training:
  batch_tokens: 256
  max_length: 30
  max_epochs: 4
  evaluate_every: 7
  learning_rate: 0.02
  checkpoint_seconds: 1
  early_stopping: null
  deterministic: true
search: {{type: beam, beam_size: 2}}
evaluation: {{metrics: [exact_match, chrf], tokenize: none}}
"""
ROWS = {"train": 240, "eval": 24, "test": 24}
CACHED = "cached nodes"
WHO = ("all", "all", "supervisor", "worker")
THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
EXIT_SECONDS = 20.0  # for the processes of a killed run to end, on a busy machine
TEMPORARY = re.compile(r"\.tmp$|\.old$|^\.pushing-|^\.removed-|-journal$|\.damaged$|^regard-")
IDS = {
    rf"^pipelines/{NAME}/artifacts/([^/]+/[^/]+)/\d+/": r"\1/",
    rf"^pipelines/{NAME}/checkpoints/[0-9a-f]+/": "checkpoints/",
    rf"^registry/{NAME}/": "registry/",
    r"events\.out\.tfevents\..*": "events.out.tfevents",
}
COMPLETE = "SELECT id FROM Execution WHERE last_known_state IN (3, 5)"  # or CACHED
LIVE = "SELECT uri FROM Artifact WHERE state = 2"
NUMBERED = "saved_model.pb"  # TensorFlow numbers functions by all that a process traced before
# Must be equal in two undisturbed runs, whatever else is.
STABLE = (
    "Trainer/model/Format-Serving/variables/variables.data-00000-of-00001",
    "TokenizerTrainer/tokenizer/source.vocab",
    "Evaluator/evaluation/metrics.json",
    "Predictor/predictions/candidate.parquet",
    "registry/1/variables/variables.data-00000-of-00001",
)


def files_of(home: Path) -> dict[str, str]:
    """Digests of the files of a workspace except the records of runs, by names without ids."""
    result: dict[str, str] = {}
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if path.is_dir() or name.startswith(f"pipelines/{NAME}/runs/"):
            continue
        for pattern, replacement in IDS.items():
            name = re.sub(pattern, replacement, name)
        while name in result:
            name += " (again)"
        result[name] = sha256_file(path)
    return result


def leftovers(folder: Path) -> list[str]:
    """Temporary files, and outputs in the files or in the metadata that do not belong together."""
    home, artifacts = folder / "home", folder / "home" / "pipelines" / NAME / "artifacts"
    with contextlib.closing(sqlite3.connect(artifacts.with_name("metadata.sqlite"))) as database:
        faults = [row for (row,) in database.execute("PRAGMA integrity_check") if row != "ok"]
        complete = [str(row) for (row,) in database.execute(COMPLETE)]
        uris = [Path(uri) for (uri,) in database.execute(LIVE)]
    faults += [f"no output: {path}" for path in uris if not path.exists()]
    faults += [f"temporary: {path}" for path in home.rglob("*") if TEMPORARY.search(path.name)]
    faults += [f"temporary: {path}" for path in (folder / "tmp").iterdir()]
    outputs = [path for path in output_folders(artifacts) if path.name not in complete]
    return faults + [f"of no complete execution: {path}" for path in outputs]


@dataclasses.dataclass
class Reference:
    """What an undisturbed run leaves: its files, those with stable bytes, seconds of each phase."""

    files: dict[str, str]
    stable: dict[str, str]
    seconds: dict[str, float]

    @classmethod
    def read(cls, path: Path) -> Reference:
        """Read the reference that another benchmark wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def faults(self, folder: Path) -> list[str]:
        """How a complete run differs."""
        files = files_of(folder / "home")
        faults = [f"missing: {name}" for name in self.files if name not in files]
        faults += [f"left over: {name}" for name in files if name not in self.files]
        faults += [
            f"different: {name}"
            for name, digest in self.stable.items()
            if files.get(name, digest) != digest
        ]
        return faults + leftovers(folder)


def make_folder(path: Path) -> Path:
    """Create the folder of one run."""
    (path / "tmp").mkdir(parents=True)
    return path


def write_inputs(root: Path) -> None:
    """Write the data and the configuration."""
    rng, data = random.Random(1), root / "data"
    data.mkdir(parents=True)
    words = {"".join(rng.choices("abcdefgh", k=rng.randint(2, 7))) for _ in range(3000)}
    rows = iter(sorted(words))
    for name, count in ROWS.items():
        lines = [f"{word}\t{word.upper()}\n" for word, _ in zip(rows, range(count), strict=False)]
        (data / f"{name}.tsv").write_text("".join(lines))
    (root / "tiny.yaml").write_text(CONFIG.format(name=NAME, root=data))


def run_undisturbed(folder: Path) -> Attempt:
    """Run once to the end."""
    attempt = Attempt(make_folder(folder), set())
    wait_for(attempt, "never", 0.0)
    attempt.process.join()
    if attempt.process.exitcode != 0:
        raise RuntimeError(f"the undisturbed run failed: see {folder}")
    attempt.update()
    attempt.seconds[END] = time.monotonic() - attempt.started
    return attempt


def make_reference(root: Path) -> Reference:
    """Run twice without kills: once with forks, and once as a user does."""
    attempt = run_undisturbed(root / "undisturbed")
    files = files_of(root / "undisturbed" / "home")
    folder = make_folder(root / "command")
    environment = {**os.environ, "REGARD_HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
    command = [sys.executable, "-m", "regard.pipeline.cli", "run", str(root / "tiny.yaml")]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    other = files_of(folder / "home")
    stable = {
        name: digest
        for name, digest in files.items()
        if other.get(name) == digest and Path(name).name != NUMBERED
    }
    print(f"compared: {len(stable)} of {len(files)} files; all but")
    print("  " + "\n  ".join(sorted(files.keys() ^ stable.keys())), flush=True)
    if missing := [name for name in STABLE if name not in stable] + leftovers(folder):
        raise RuntimeError(f"undisturbed runs differ: {missing}")
    return Reference(files, stable, attempt.seconds)


class Campaign:
    """Kills runs, and counts what the kills hit."""

    def __init__(self, root: Path, seed: int, reference: Reference):
        self.root, self.reference, self.seed = root, reference, seed
        self.log = root / f"log-{seed}.jsonl"
        self.log.touch()
        lines = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
        self.kills = sum("kill" in line for line in lines)
        self.runs = sum("faults" in line for line in lines)
        self.rng = random.Random(f"{seed} {self.kills}")
        self.faults = list[str]()

    def complete_a_run(self) -> None:
        """Start and kill a run until it is complete, and compare it."""
        folder = self.root / f"run-{self.seed}-{self.runs}"
        if folder.exists():  # of a benchmark that was interrupted
            shutil.rmtree(folder)
        make_folder(folder)
        complete, dying, kills, self.faults = set[str](), list[psutil.Process](), self.kills, []
        try:
            while self._attempt(folder, complete, dying):
                pass
            self.faults += self.reference.faults(folder)
        except (RuntimeError, TimeoutError, sqlite3.Error) as error:
            self.faults.append(str(error))
        self._wait_for_end(dying)
        self._write(run=self.runs, kills=self.kills - kills, faults=self.faults)
        print(
            f"run {self.runs}: {self.kills - kills} kills ({self.kills} in all), "
            f"faults: {self.faults or 'none'}",
            flush=True,
        )
        self.runs += 1
        if not self.faults:
            shutil.rmtree(folder)

    def _write(self, **fields: object) -> None:
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")

    def _attempt(self, folder: Path, complete: set[str], dying: list[psutil.Process]) -> bool:
        """Start the run and kill it; return False if it was complete before."""
        runs = folder / "home" / "pipelines" / NAME / "runs"
        phase, seconds, who = self._draw(complete)
        attempt = Attempt(folder, {path.name for path in runs.glob("*")})
        tree, was_killed = list[psutil.Process](), False
        if wait_for(attempt, phase, seconds):
            with contextlib.suppress(psutil.Error, ProcessLookupError):  # it has just ended
                tree, was_killed = kill(attempt, who)
                self._record(attempt, who, folder, complete)
        attempt.process.join(ATTEMPT_SECONDS)
        status = attempt.process.exitcode
        new = {name: value for name, value in attempt.seconds.items() if name not in complete}
        self.reference.seconds.update(new)  # the load of the machine changes
        if status == 0:
            return False
        expected = (-signal.SIGKILL,) if who != "worker" else (1, -signal.SIGKILL)
        if not was_killed or status not in expected:
            raise RuntimeError(f"exit status {status} in {attempt.phase}: {attempt.run}")
        if attempt.run is not None:
            for event, _ in events.read(attempt.run / "events.jsonl"):
                if event.get("state") in ("done", "cached"):
                    complete.add(event["node"])
        dying += tree
        if self.rng.random() < 0.5:
            self._wait_for_end(dying)
        return True

    def _draw(self, complete: set[str]) -> tuple[str, float, str]:
        """Draw the phase, the seconds after its beginning, and whom to kill."""
        rng, draw = self.rng, self.rng.random()
        pending = [phase for phase in self.reference.seconds if phase not in (START, *complete)]
        index = 0 if draw < 0.85 else rng.randrange(min(4, len(pending)))
        phase = START if draw < 0.08 else pending[index]
        length = self.reference.seconds[phase]
        if phase == START:
            seconds = rng.uniform(0.0, 2 * length)  # beyond it, cached outputs are found
        elif rng.random() < 0.7 or phase == END:
            seconds = rng.uniform(0.0, 1.1 * length)
        else:
            seconds = max(0.0, rng.gauss(length, 0.05 * length + 0.02))
        return phase, seconds, rng.choice(WHO)

    def _record(self, attempt: Attempt, who: str, folder: Path, complete: set[str]) -> None:
        """Count what the kill hit, from what the processes left."""
        attempt.update()
        self.kills += 1
        home = folder / "home"
        signs = [
            name
            for name, pattern in {
                "a temporary file": "**/.*.tmp",
                "an open transaction": "pipelines/*/metadata.sqlite-journal",
                "a push": "registry/*/.pushing-*",
            }.items()
            if any(home.glob(pattern))
        ]
        phase = CACHED if attempt.phase in complete else attempt.phase
        seconds = round(time.monotonic() - attempt.started, 3)
        self._write(kill=self.kills, phase=phase, who=who, seconds=seconds, signs=signs)

    def _wait_for_end(self, dying: list[psutil.Process]) -> None:
        _, alive = psutil.wait_procs(dying, EXIT_SECONDS)
        for process in alive:
            with contextlib.suppress(psutil.Error):
                self.faults.append(f"alive after {EXIT_SECONDS} s: {process.cmdline()}")
                process.kill()
        dying.clear()


def print_result(root: Path, phases: Iterable[str]) -> int:
    """Print what the kills of all benchmarks in a folder hit, and return the number of faults."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(root.glob("log-*.jsonl"))]
    lines = [json.loads(line) for line in "".join(texts).splitlines()]
    kills, runs = ([line for line in lines if key in line] for key in ("kill", "run"))
    faults = [f"run {line['run']}: {text}" for line in runs for text in line["faults"]]
    compared = sum(line["kills"] for line in runs)
    print(f"kills: {len(kills)}, {compared} of them in {len(runs)} complete runs")
    print(f"faults: {len(faults)}")
    print(f"killed: {dict(collections.Counter(line['who'] for line in kills))}")
    signs = collections.Counter(sign for line in kills for sign in line["signs"])
    print(f"left by the kill: {dict(signs)}")
    counts = collections.Counter(line["phase"] for line in kills)
    print("| phase | kills |\n| --- | --- |")
    for phase in (*phases, CACHED):
        print(f"| {phase} | {counts[phase]} |")
    print("\n".join(faults))
    return len(faults)


def main(arguments: list[str]) -> int:
    """Run the benchmark and print what happened."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust runs")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="stays, so that the benchmark can resume")
    options = parser.parse_args(arguments)
    os.environ |= dict.fromkeys(THREADS, "1")
    with contextlib.ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="trust-"))
        root: Path = options.folder or Path(temporary)
        path = root / "reference.json"
        if not path.exists():
            write_inputs(root)
        multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
        os.environ["REGARD_PRELOAD"] = str(root / "tiny.yaml")
        if not path.exists():
            path.write_text(json.dumps(dataclasses.asdict(make_reference(root))))
        reference = Reference.read(path)
        campaign = Campaign(root, options.seed, reference)
        while campaign.kills < options.kills:
            campaign.complete_a_run()
        return int(bool(print_result(root, reference.seconds)))
