"""The scripts of examples/ run on several backends, and learn."""

import ast
import gzip
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.marks import slow_except

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
ALONE = [name for name in SCRIPTS if name != "transformer_multi30k"]
BACKENDS = [each for each in ("tensorflow", "jax", "torch") if importlib.util.find_spec(each)]
QUICK = {"jax"} if "jax" in BACKENDS else {*BACKENDS[:1]}  # one is enough for `make test`
RECORDER = Path(__file__).with_name("recorder.py")
no_data = pytest.mark.skipif(
    "REGARD_DATA" not in os.environ, reason="REGARD_DATA does not name the folder of Multi30k"
)
needs_multi30k = pytest.param("transformer_multi30k", marks=no_data)


def start(folder, backend, scripts, **variables):
    """Run scripts in a process of their own, in a folder."""
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": str(ROOT),
        "XLA_FLAGS": "--xla_backend_optimization_level=0",  # less time to compile
        **variables,
    }
    command = [sys.executable, "-W", "ignore", str(RECORDER), *scripts]
    return subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)


def records_of(process, folder):
    """Wait for a process, and return what the scripts train and predict."""
    _, errors = process.communicate()
    assert process.returncode == 0, errors[-3000:]
    return {path.stem: dict(np.load(path)) for path in folder.glob("*.npz")}


def shorten_multi30k(folder):
    """Write a few sentences of Multi30k, and return their folder."""
    (folder / "multi30k").mkdir()
    for language in ("en", "de"):
        for name, count in ((f"train.{language}", 4000), (f"test_2016_flickr.{language}", 6)):
            path = Path(os.environ["REGARD_DATA"], "multi30k", f"{name}.gz")
            lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
            (folder / "multi30k" / path.name).write_bytes(gzip.compress(b"".join(lines[:count])))
    return folder


@pytest.fixture(scope="module", params=slow_except(QUICK, BACKENDS))
def records(request, tmp_path_factory):
    """The records of the scripts with one backend, and their folder."""
    folder = tmp_path_factory.mktemp(request.param)
    data, scripts = {}, ALONE
    if "REGARD_DATA" in os.environ:
        scripts, data = list(SCRIPTS), {"REGARD_DATA": str(shorten_multi30k(folder))}
    with start(folder, request.param, scripts, **data) as process:
        return records_of(process, folder), folder


def check_weights(weights, mask):
    """Each row of weights ``[batch, target, source]`` is a distribution over what is no padding."""
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-4)
    padding = np.broadcast_to(~mask[:, None], weights.shape)
    assert padding.any()
    assert np.all(weights[padding] == 0.0)


@pytest.mark.parametrize("name", [*ALONE, needs_multi30k])
def test_scripts_learn_and_draw(records, name):
    record, picture = records[0][name], records[1] / f"{name}.png"
    assert len(record["loss"]) == 4
    assert record["loss"][-1] < record["loss"][0]
    assert np.all(np.isfinite(record["logits"]))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 3_000


@pytest.mark.parametrize("name", ["bahdanau_dates", "luong_dates", needs_multi30k])
def test_padding_of_the_source_gets_no_weight(records, name):
    record = records[0][name]
    assert record["alignment"].shape == (6, record["logits"].shape[1], record["source"].shape[1])
    check_weights(record["alignment"], record["source"] != 0)


def test_missing_points_are_not_chosen(records):
    record = records[0]["pointer_hulls"]
    assert record["alignment"].shape == (6, 7, 7)
    can_be_chosen = np.pad(record["mask"], ((0, 0), (1, 0)), constant_values=True)
    check_weights(record["alignment"], can_be_chosen)


def test_points_are_chosen_once(records):
    output = np.argmax(records[0]["pointer_hulls"]["logits"], axis=-1)
    for row in output.tolist():
        points = row[: row.index(0)]
        assert len(points) == len(set(points))


def test_words_of_padding_get_no_weight(records):
    record = records[0]["reading_stories"]
    is_word = record["passage"] != 0
    check_weights(
        record["alignment"][is_word][:, None],
        np.repeat(record["question"] != 0, is_word.sum(axis=1), axis=0),
    )
    logits = record["logits"]
    assert logits.shape == (6, 2, 63)
    assert np.all(np.where(is_word[:, None], -np.inf, logits).max(axis=-1) < logits.max(axis=-1))


def test_captions_attend_to_cells_of_the_image(records):
    weights = records[0]["captioning_scenes"]["alignment"]
    assert weights.shape == (6, 9, 64)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-4)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_short_and_need_no_pipeline(name):
    text = SCRIPTS[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    modules = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module)
    others = {each for each in modules if each.split(".")[0] not in sys.stdlib_module_names}
    own = {each for each in others if each.startswith("regard.models.")}
    data = {"sacrebleu", "sentencepiece"} if name == "transformer_multi30k" else set()
    packages = {each.split(".")[0] for each in others - own}
    assert packages == {"keras", "numpy", "matplotlib"} | data
    assert own


@pytest.mark.parametrize("page", ["examples/README.md", "docs/examples.md"])
def test_every_script_is_on_the_page(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert set(re.findall(r"(\w+)\.py\b", text)) == set(SCRIPTS)
    pictures = {path.stem for path in (ROOT / "docs" / "examples").glob("*.png")}
    assert pictures == set(SCRIPTS)
    assert all(f"{name}.png" in text for name in SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_pictures_are_small(name):
    assert 3_000 < (ROOT / "docs" / "examples" / f"{name}.png").stat().st_size <= 60_000
