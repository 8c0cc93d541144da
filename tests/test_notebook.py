"""The code of the notebooks in docs/ runs."""

import base64
import builtins
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
        "range(1, 60)": "range(1, 60, 7)",
        "epochs=12, verbose": "epochs=1, verbose",
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
    dot, scaled = zip(*namespace["gradients"].values(), strict=True)
    np.testing.assert_allclose(dot, [0.056, 0.032, 0.017, 0.009, 0.004], atol=0.0006)
    np.testing.assert_allclose(scaled, 0.0695, atol=0.0006)


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


def test_the_keras_model_of_a_keras_user(namespace, eager_functions):
    """With few phrases: whether it learns is a slow test."""
    parts = code("keras_user.ipynb")
    for each in parts[: next(n for n, part in enumerate(parts) if "run(config)" in part)]:
        exec(smaller(each), namespace)
    alignment = namespace["alignment"]
    assert alignment.shape == (1, 2, 5)
    np.testing.assert_allclose(alignment.sum(axis=-1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(alignment[:, :, 4], 0.0)  # a text of four words
    ids, model, loaded = (namespace[name] for name in ("ids", "model", "restored"))
    np.testing.assert_allclose(model(ids[:3]), loaded(ids[:3]), atol=1e-5)
    assert namespace["config"].training.max_epochs == 12


@pytest.mark.slow
def test_the_notebook_of_a_keras_user(namespace, capsys):
    *parts, evaluation, last = code("keras_user.ipynb")
    for each in parts:
        exec(each, namespace)
    assert namespace["accuracy"] > 0.95
    assert namespace["result"].status == "succeeded"
    assert namespace["prediction"].hypothesis == "06 : 35"
    printed = capsys.readouterr().out
    assert "validation_split of Keras is data.split.eval" in printed
    exec(f"{evaluation.rstrip().replace('evaluate(', 'evaluation = evaluate(')}", namespace)
    assert namespace["evaluation"].metrics["exact_match"].value == 1.0
    exec(last, namespace)
    first, second = namespace["prediction"].hypotheses
    assert first.score > second.score


@pytest.fixture
def interactive_context(monkeypatch):
    """The class InteractiveContext, which does nothing outside of IPython."""
    pytest.importorskip("nbformat", reason="TFX's InteractiveContext imports it")
    from tfx.orchestration.experimental.interactive import interactive_context

    monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)
    return interactive_context.InteractiveContext


def test_the_components_of_a_tfx_user_fit_together(namespace, interactive_context, monkeypatch):
    """Without running them, which is a slow test."""
    runs, channels = [], []
    monkeypatch.setattr(interactive_context, "run", lambda self, node: runs.append(node.id))
    monkeypatch.setattr(interactive_context, "show", lambda self, item: channels.append(item))
    parts = code("tfx_user.ipynb")
    for each in parts[: next(n for n, part in enumerate(parts) if "saved_model.load" in part)]:
        exec(each, namespace)
    expected = "CsvExampleGen StatisticsGen SchemaGen TokenizerTrainer Preprocess Trainer "
    expected += "Predictor Evaluator Pusher"
    assert runs == expected.split()
    kinds = [channel.type_name for channel in channels]
    assert kinds == ["Schema", "ModelEvaluation", "ModelBlessing"]


@pytest.mark.slow
def test_the_notebook_of_a_tfx_user(namespace, interactive_context, capsys):
    for each in code("tfx_user.ipynb"):
        exec(each, namespace)
    assert namespace["outputs"]["translation"].numpy().tolist() == [b"HEAD", b"CAFE"]
    lineage = capsys.readouterr().out.splitlines()[-9:]
    assert [line.rpartition(".")[2] for line in lineage] == [
        *("Pusher", "Trainer", "Preprocess", "CsvExampleGen", "SchemaGen", "StatisticsGen"),
        *("TokenizerTrainer", "Evaluator", "Predictor"),
    ]
    trainer = namespace["trainer"]
    (model,) = trainer.outputs["model"].get()
    namespace["context"].run(trainer)
    (again,) = trainer.outputs["model"].get()
    assert again.id == model.id  # cached


@pytest.mark.parametrize(
    ("notebook", "images"),
    [
        ("attention_layers.ipynb", 1),
        ("pipeline.ipynb", 2),
        ("keras_user.ipynb", 2),
        ("tfx_user.ipynb", 0),
    ],
)
def test_notebooks_are_committed_with_their_outputs(notebook, images):
    outputs = [output for cell in cells(notebook) for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    pictures = [o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == images
    assert all(1_000 < len(base64.b64decode(picture)) < 50_000 for picture in pictures)
