"""The components that train, evaluate and publish a model, as users construct them."""

import json

import pytest
from tfx.types.channel_utils import as_channel
from tfx.types.standard_artifacts import Examples, Model, ModelBlessing, TransformGraph

from regard.components import Evaluator, Predictor, Pusher, Reporter, ServingCheck, Trainer, Tuner
from regard.components.common.artifact_types import Predictions
from regard.components.settings.trainer import CONFIG, RUN, TrainerConfig
from regard.components.trainer.training_key import trainer_code
from regard.core.errors import UserError
from regard.core.files import sha256_file
from regard.models import tasks

EXAMPLES, GRAPH = as_channel([Examples()]), as_channel([TransformGraph()])
MODEL, PREDICTIONS = as_channel([Model()]), as_channel([Predictions()])
BLESSING = as_channel([ModelBlessing()])


def trainer(task="translation", **arguments):
    properties = Trainer(EXAMPLES, GRAPH, task, **arguments).exec_properties
    custom = json.loads(properties["custom_config"])
    return TrainerConfig.model_validate(custom[CONFIG]), custom[RUN], properties["code"]


@pytest.mark.parametrize("task", tasks.TASKS.own)
def test_trainer_has_the_defaults_and_the_code_of_the_task(task):
    config, run, code = trainer(task)
    description = tasks.describe(task)
    assert config.model == description.model()
    assert config.search == (description.search[1] if description.search else None)
    assert code == trainer_code(config)
    assert (run["checkpoints"], run["checkpoint_key"], run["start"]) == ("", "", None)


def test_trainer_takes_sections():
    config, run, _ = trainer(
        model={"embedding": 8},
        training={"max_steps": 3},
        search={"type": "greedy"},
        serving={"split_sentences": True, "check_rows": 3},
        tags={"names": ["de"], "column": "language", "temperature": 5.0},
        checkpoints="/checkpoints",
    )
    assert (config.model.embedding, config.training.max_steps) == (8, 3)
    assert config.search.type == "greedy"
    assert config.serving.split_sentences
    assert config.serving.check_rows != 3  # does not change the export
    assert config.tags.temperature == 5.0
    assert run["checkpoints"] == "/checkpoints"


def test_trainer_knows_the_content_of_word_vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("a 1 2\n")
    _, run, _ = trainer(model={"embedding": 2, "pretrained": {"source": str(path)}})
    assert run["vectors"] == {"source": sha256_file(path)}


def test_trainer_finds_other_models_where_they_are_published():
    training = {"warm_start": {"model": "words@1"}}
    with pytest.raises(UserError, match=r"training\.warm_start: .*published"):
        trainer(training=training)
    _, run, _ = trainer(training=training, published="/registry/words")
    assert run["published"] == "/registry/words"


def test_tuner_has_a_folder_for_equal_searches(tmp_path):
    def search(low=0.001, data="", **changes):
        tune = {"search_space": {"training.learning_rate": {"log": [low, 0.1]}}, **changes}
        folder = str(tmp_path)
        return Tuner(EXAMPLES, GRAPH, "translation", tune, folder, data=data).search_folder

    assert search().startswith(f"{tmp_path}/")
    assert search() == search(iterations=2)
    assert len({search(), search(0.01), search(seed=3), search(data="other")}) == 4
    tune = {"search_space": {"training.speed": {"log": [0.1, 0.2]}}}
    with pytest.raises(UserError, match=r"tune\.search_space: .*speed"):
        Tuner(EXAMPLES, GRAPH, "translation", tune, str(tmp_path))


def test_tuner_checks_its_algorithm(tmp_path):
    tune = {"search_space": {"model.dropout": {"linear": [0, 1]}}}
    for key, value in (("max_trials", 3), ("max_epochs", 2)):
        with pytest.raises(UserError, match=f"tune.{key}: "):
            Tuner(EXAMPLES, GRAPH, "translation", {**tune, key: value}, str(tmp_path))


def test_predictor_keeps_what_the_metrics_need():
    def properties(task="translation", **arguments):
        return Predictor(EXAMPLES, MODEL, task, **arguments).exec_properties

    plain = properties()
    assert (plain["split"], plain["batch_size"], plain["reference_scores"]) == ("test", 64, 0)
    evaluation = {"metrics": ["bleu", "perplexity"], "batch_size": 3}
    changed = properties(evaluation=evaluation, split="eval", extra=["domain"])
    assert (changed["split"], changed["batch_size"], changed["reference_scores"]) == ("eval", 3, 1)
    assert json.loads(changed["features"])[-1]["name"] == "domain"
    points = json.loads(properties("pointer", settings={"dimensions": 3})["features"])[0]
    assert points["dimensions"] == 3


def test_evaluator_has_the_metrics_of_the_task():
    config = json.loads(Evaluator(PREDICTIONS, "span").exec_properties["config"])
    assert tuple(config["metrics"]) == tasks.describe("span").metrics
    with pytest.raises(UserError, match=r"evaluation\.metrics: 'blue'"):
        Evaluator(PREDICTIONS, "translation", {"metrics": ["bleu"], "thresholds": {"blue": 1.0}})


def test_serving_check_takes_the_section_serving():
    node = ServingCheck(MODEL, PREDICTIONS, EXAMPLES, {"tf_serving_versions": ["2.20"]})
    assert json.loads(node.exec_properties["tf_serving_versions"]) == ["2.20"]
    assert node.exec_properties["rows"] == 32


def test_pusher_and_reporter_need_few_inputs():
    pusher = Pusher(MODEL, BLESSING, "/registry", "words", "translation")
    assert set(pusher.inputs) == {"model", "model_blessing"}
    record = json.loads(pusher.exec_properties["record"])
    assert record["config"] == {"name": "words", "task": "translation"}
    reporter = Reporter("words", "translation", model=MODEL)
    assert set(reporter.inputs) == {"model"}
    with pytest.raises(UserError, match="model_blessing"):
        Pusher(MODEL, MODEL, "/registry", "words", "translation")


def test_unknown_inputs_are_refused():
    message = r"'evaluaton' is not .*Did you mean evaluation\?.*'blesing' .*Did you mean blessing"
    with pytest.raises(UserError, match=message):
        Reporter("words", "translation", model=MODEL, evaluaton=PREDICTIONS, blesing=5)
