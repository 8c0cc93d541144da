"""The code of the notebooks in docs/ runs."""

import base64
import json
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import tensorflow as tf

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.fixture
def eager_functions():
    """Run functions without tracing them, which takes longer than a few steps of training."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def namespace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGARD_HOME", str(tmp_path))  # a notebook may set it
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    matplotlib.use("Agg")
    return {"__name__": "__main__"}


def cells(notebook):
    return json.loads((DOCS / notebook).read_text(encoding="utf-8"))["cells"]


def code(notebook):
    return ["".join(cell["source"]) for cell in cells(notebook) if cell["cell_type"] == "code"]


def smaller(text):
    """A cell with fewer examples and epochs, and strings of three digits."""
    changes = {
        "examples(10_000)": "examples(64)",
        "examples(500)": "examples(8)",
        "epochs=2": "epochs=1",
        "OFFSET, LENGTH, VOCABULARY = 0, 1, 2, 3, 6, 13": (
            "OFFSET, LENGTH, VOCABULARY = 0, 1, 2, 3, 3, 13"
        ),
        "(3, 1, 4, 1, 5, 9)": "(3, 1, 4)",
    }
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def test_the_decoders_of_the_notebook_train(namespace, eager_functions):
    """With few and short examples: whether they learn to reverse is a slow test."""
    parts = code("attention_layers.ipynb")
    for each in (text for text in parts if "class " in text):
        assert len(each.splitlines()) <= 31  # "about thirty lines"
    for each in parts:
        exec(smaller(each), namespace)
    assert len(namespace["source"]) == 64
    assert set(namespace["accuracies"]) == {"Bahdanau", "Luong"}
    for model in namespace["models"].values():
        _, alignment = namespace["reverse"](model, namespace["row"])
        assert alignment.shape == (1, 4, 3)
        np.testing.assert_allclose(alignment.sum(axis=-1), 1.0, rtol=1e-5)


@pytest.mark.slow
def test_the_decoders_of_the_notebook_learn_to_reverse(namespace):
    for each in code("attention_layers.ipynb"):
        exec(each, namespace)
    assert set(namespace["accuracies"]) == {"Bahdanau", "Luong"}
    assert min(namespace["accuracies"].values()) > 0.95
    _, alignment = namespace["reverse"](namespace["models"]["Luong"], namespace["row"])
    np.testing.assert_array_equal(np.argmax(alignment[0, :6], axis=-1), np.arange(6)[::-1])


def test_the_configuration_of_the_notebook_is_valid(namespace):
    parts = code("pipeline.ipynb")
    for each in parts[: parts.index("result = run(config)")]:
        exec(each, namespace)
    assert namespace["config"].name == "dates"
    assert namespace["config"].nodes[0] == "CorpusGen"
    assert len(Path("data/dates.tsv").read_text(encoding="utf-8").splitlines()) == 3000


@pytest.mark.slow
def test_the_pipeline_of_the_notebook_publishes_a_model(namespace, tmp_path, capsys):
    for each in code("pipeline.ipynb"):
        exec(each, namespace)
    result = namespace["result"]
    assert (result.status, result.version) == ("succeeded", "1")
    assert result.metrics["exact_match"] > 0.9
    assert result.model == tmp_path / "workspace" / "registry" / "dates" / "1"
    assert result.history[-1]["loss"] < result.history[0]["loss"]
    printed = capsys.readouterr().out
    assert "Friday 20 November 2026 → 2026 - 11 - 20" in printed
    assert "✓ Trainer" in printed
    outputs, inputs, weights = namespace["predictions"][0].attention
    assert weights.shape == (len(outputs), len(inputs))
    # The day of the month is copied from its only place in the source.
    day = weights[[token.strip("▁") for token in outputs].index("20")]
    assert inputs[int(np.argmax(day))].strip("▁") == "20"


@pytest.mark.parametrize(
    ("notebook", "images"), [("attention_layers.ipynb", 1), ("pipeline.ipynb", 2)]
)
def test_notebooks_are_committed_with_their_outputs(notebook, images):
    outputs = [output for cell in cells(notebook) for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    pictures = [o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == images
    assert all(1_000 < len(base64.b64decode(picture)) < 50_000 for picture in pictures)
