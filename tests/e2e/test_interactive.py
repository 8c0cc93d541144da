"""All of Regard's components in TFX's InteractiveContext, one after the other."""

import builtins
from pathlib import Path

import pytest

from regard.components import (
    CorpusGen,
    Evaluator,
    ExampleValidator,
    Predictor,
    Preprocess,
    Pusher,
    Reporter,
    ServingCheck,
    TokenizerTrainer,
    Trainer,
    Tuner,
)
from tests.components.corpora import BEAM

pytest.importorskip("nbformat", reason="TFX's InteractiveContext imports it")

TASK = "translation"
SECTIONS = {
    "model": {"encoder": {"type": "embedding"}, "decoder": {"type": "luong", "units": 8}},
    "training": {"batch_tokens": 500, "max_epochs": None, "max_steps": 4, "evaluate_every": 2},
}
EVALUATION = {"metrics": ["chrf"], "checks": {"repetitions": {"action": "warn"}}}
TUNE = {
    "search_space": {"training.learning_rate": {"log": [0.001, 0.1]}},
    "algorithm": "random",
    "max_trials": 1,
}
DATA = {"train": "pairs.tsv", "split": {"eval": 0.1, "test": 0.1}}


@pytest.fixture
def context(tmp_path, monkeypatch):
    from tfx.orchestration.experimental.interactive import interactive_context

    monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)
    monkeypatch.chdir(tmp_path)
    write_pairs("")
    return interactive_context.InteractiveContext("pairs", "pipeline", None, BEAM)


def write_pairs(ending):
    numbers = [f"{number:03}" for number in range(300)]
    lines = (f"{number}\t{number[::-1]}{ending}\n" for number in numbers)
    Path("pairs.tsv").write_text("".join(lines))


@pytest.mark.slow
def test_every_component_runs(context):
    from tfx.components import SchemaGen, StatisticsGen

    def run(component):
        context.run(component)
        return component.outputs

    corpus = run(CorpusGen(DATA, TASK))
    examples = {"examples": corpus["examples"]}
    statistics = run(StatisticsGen(**examples))
    schema = run(SchemaGen(statistics["statistics"], infer_feature_shape=True))
    checked = run(ExampleValidator(**examples, **statistics, **schema, task=TASK))
    tokenizer = run(TokenizerTrainer(**examples, task=TASK, tokenizer={"type": "char"}))
    rows = run(Preprocess(**examples, **schema, **tokenizer, task=TASK, **SECTIONS))
    training = {"examples": rows["transformed_examples"], "task": TASK, **SECTIONS}
    training["transform_graph"] = rows["transform_graph"]
    tuned = run(Tuner(**training, tune=TUNE, folder="searches"))
    trained = run(Trainer(**training, search={"type": "greedy"}))
    model = {"model": trained["model"]}
    predicted = run(Predictor(**examples, **model, task=TASK, evaluation=EVALUATION))
    evaluated = run(Evaluator(**predicted, task=TASK, evaluation=EVALUATION))
    served = run(ServingCheck(**model, **predicted, **examples))
    pushed = run(
        Pusher(
            **model,
            model_blessing=evaluated["blessing"],
            infra_blessing=served["blessing"],
            registry="registry",
            name="pairs",
            task=TASK,
            publish_anyway=True,
        )
    )
    artifacts = {"corpus": corpus["findings"], "checks": checked["findings"]}
    artifacts |= {"evaluation": evaluated["evaluation"], "model_run": trained["model_run"]}
    report = run(Reporter("pairs", TASK, **artifacts, pushed=pushed["pushed_model"]))
    (page,) = report["report"].get()
    assert "chrF" in Path(page.uri, "report.html").read_text(encoding="utf-8")
    assert (Path("registry") / "pairs" / "1" / "saved_model.pb").is_file()
    (trials,) = tuned["best_hyperparameters"].get()
    assert list(Path(trials.uri).iterdir())


def test_corpus_gen_notices_edits_of_the_data(context):
    def rows():
        node = CorpusGen(DATA, TASK)
        context.run(node)
        (artifact,) = node.outputs["examples"].get()
        return artifact.id

    first = rows()
    assert rows() == first  # cached
    write_pairs("!")
    assert rows() != first
