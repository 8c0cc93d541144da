"""What the long run measures, without running it for hours."""

import gzip
import http.server
import json
import os
import threading
import xml.etree.ElementTree as ET
from collections import Counter

import numpy as np
import pytest

from benchmarks.long_run.client import Client
from benchmarks.long_run.drifting_data import ROWS, write_pipeline, write_span
from benchmarks.long_run.plots import draw
from benchmarks.long_run.samples import (
    append_sample,
    measure_folder,
    measure_process,
    read_samples,
)
from benchmarks.long_run.summary import growth, summarize
from regard.pipeline.config.load import load


class Server(http.server.BaseHTTPRequestHandler):
    """Answers every third request with an error, and every third one without a text."""

    protocol_version = "HTTP/1.1"
    count = 0
    has_enough = threading.Event()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Server.count += 1
        kind = Server.count % 3
        prediction = {"translation": "1999" if kind else None, "score": -0.5}
        body = json.dumps({"predictions": [prediction]}).encode()
        self.send_response(503 if kind == 1 else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if Server.count >= 30:
            Server.has_enough.set()

    def log_message(self, *arguments):
        pass


def test_the_client_counts_errors_and_wrong_answers():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = Client(server.server_port, "m", ["one"], 1000.0)
    client.start()
    Server.has_enough.wait(30)
    client.stop()
    client.join()
    result = client.take()
    server.shutdown()
    good = result["requests"] - result["failures"]
    assert result["requests"] == Server.count
    assert good == Server.count // 3 + (Server.count % 3 == 2)
    assert result["errors"]
    assert client.take()["requests"] == 0


def test_a_partial_line_of_a_killed_program_is_left_out(tmp_path):
    append_sample(tmp_path, {"hours": 1})
    with (tmp_path / "samples.jsonl").open("a") as file:
        file.write('{"hours": 2, "kil')
    append_sample(tmp_path, {"hours": 3})
    assert [sample["hours"] for sample in read_samples(tmp_path)] == [1, 3]


def test_processes_and_folders_are_measured(tmp_path):
    own = measure_process(os.getpid())
    assert own["memory"] > 10e6
    with (tmp_path / "file").open("w") as file:
        assert measure_process(os.getpid())["descriptors"] == own["descriptors"] + 1
        file.write("x" * 8192)
    assert measure_process(2**22 - 1) == {}
    folder = measure_folder(tmp_path)
    assert (folder["files"], folder["entries"]) == (1, 1)
    assert folder["size"] >= 8192


def test_the_growth_leaves_out_the_warm_up():
    hours = np.arange(0, 8, 0.1)
    values = np.where(hours < 2, 100 * hours, 200 + 3 * hours)
    assert growth(hours, values) == pytest.approx(3)


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "data" / "quickstart"
    folder.mkdir(parents=True)
    rows = [f"{n}\t{n}\tdate\t{('de', 'en', 'fr')[n % 3]}\t0-0\n" for n in range(3000)]
    for split in ("train", "eval", "test"):
        with gzip.open(folder / f"{split}.tsv.gz", "wt") as file:
            file.writelines(rows)
    return tmp_path


def test_spans_drift_to_one_language_after_the_other(home, monkeypatch):
    monkeypatch.setenv("REGARD_HOME", str(home))
    config = write_pipeline(home, home)
    languages = []
    for number in range(1, 5):
        write_span(home, number)
        lines = (home / "data" / f"span-{number:04}.tsv").read_text().splitlines()
        languages.append(Counter(line.split("\t")[3] for line in lines))
    assert languages[1].total() == ROWS
    assert [count.most_common(1)[0][0] for count in languages] == ["en", "fr", "de", "en"]
    assert load(config).schedule.new_span


def test_a_summary_and_a_plot(tmp_path):
    process = {"memory": 5 * 10**8, "descriptors": 10, "threads": 9}
    folder = {"size": 10**7, "files": 5, "entries": 1}
    samples = [
        {
            "hours": n / 10,
            "kills": n // 10,
            "server": process | {"memory": 5 * 10**8 + n * 10**6},
            # At a kill, it can be between two processes.
            "scheduler": {} if n == 4 else process,
            **dict.fromkeys(("registry", "pipelines", "temporary"), folder),
            "spans": n,
            "versions": [1, n + 1],
            "served": [n + 1],
            "runs": {f"run {n}": "succeeded" if n % 2 else "not blessed"},
            "requests": 100,
            "failures": n == 7,
            "errors": ["refused"] * (n == 7),
            **({"p50": 5.0, "p99": 9.0} if n else {}),
        }
        for n in range(20)
    ]
    text = summarize(samples)
    assert "2,000 requests, 1 failed. refused" in text
    assert "20 runs: 10 not blessed, 10 succeeded" in text
    assert "| server, memory, MB | 500 | 510 | 519 | 519 | +10.00 |" in text
    draw(samples, tmp_path / "plot.svg")
    first = (tmp_path / "plot.svg").read_bytes()
    assert ET.fromstring(first).tag.endswith("svg")
    draw(samples, tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_bytes() == first
