"""Arguments of components: sections, channels, and all problems in one error."""

import pytest
from tfx.types.channel_utils import as_channel
from tfx.types.standard_artifacts import Examples, Model

from regard.components.common.node_arguments import NodeArguments
from regard.components.settings.task_sections import section_defaults, task_sections
from regard.components.settings.tune import TuneConfig
from regard.core.errors import UserError
from regard.models import tasks
from regard.pipeline.config.config import config_class
from regard.pipeline.config.load import validate_values


def problems(arguments):
    with pytest.raises(UserError) as caught:
        arguments.check()
    return [line.strip() for line in caught.value.message.splitlines()[1:]]


@pytest.mark.parametrize("task", tasks.TASKS.own)
def test_missing_and_empty_sections_have_the_defaults_of_a_yaml_file(task):
    arguments = NodeArguments("Trainer", task)
    content = {"name": "x", "task": task, "data": {"train": "x"}}
    sections = task_sections(tasks.describe(task))
    missing = config_class(task).model_validate(content)
    empty = config_class(task).model_validate({**content, **{name: {} for name in sections}})
    for name in sections:
        assert arguments.section(name, None) == getattr(missing, name)
        assert arguments.section(name, {}) == getattr(empty, name)


def test_given_keys_keep_the_defaults_of_the_task_for_the_others():
    training = NodeArguments("Trainer", "pointer").section("training", {"max_epochs": 3})
    assert (training.max_epochs, training.precision) == (3, "float32")
    assert section_defaults(tasks.describe("pointer"))["training"]["precision"] == "float32"


def test_a_section_of_a_configuration_is_kept():
    section = tasks.describe("translation").model(embedding=8)
    assert NodeArguments("Trainer", "translation").section("model", section) is section


def test_relative_paths_are_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = NodeArguments("Trainer", "translation")
    model = arguments.section("model", {"pretrained": {"source": "vectors.txt"}})
    tokenizer = arguments.section("tokenizer", {"type": "word", "word_list": "words.txt"})
    assert list(model.pretrained.files().values()) == [str(tmp_path / "vectors.txt")]
    assert tokenizer.word_list == str(tmp_path / "words.txt")


def test_all_problems_are_reported_together_with_their_keys():
    arguments = NodeArguments("Trainer", "translation")
    encoder, decoder = {"type": "recurrent", "unitz": 5}, {"type": "luong", "units": "x"}
    arguments.section("model", {"encoder": encoder, "decoder": decoder})
    arguments.section("training", {"max_epochs": None, "early_stopping": None})
    arguments.section("search", {"type": "bem"})
    arguments.section("tokenizer", 3)
    arguments.check_channels({"examples": Examples}, {"examples": as_channel([Model()])})
    lines = problems(arguments)
    assert [line.partition(":")[0] for line in lines] == [
        "model.encoder.unitz",
        "model.decoder.units",
        "training.max_epochs",
        "search.type",
        "tokenizer",
        "examples",
    ]
    assert "Did you mean units?" in lines[0]
    assert "Did you mean beam?" in lines[3]


def test_sections_are_checked_together():
    arguments = NodeArguments("Trainer", "translation")
    arguments.section("model", {"embedding": 30, "encoder": {"type": "transformer", "heads": 4}})
    arguments.check()  # of a component that does not train
    arguments.section("training", None)
    arguments.section("search", None)
    (line,) = problems(arguments)
    assert line.startswith("model.encoder.heads:")


@pytest.mark.parametrize(
    ("task", "name", "section", "key"),
    [
        ("similarity", "training", {"label_smoothing": 0.1}, "training.label_smoothing"),
        ("span", "training", {"scheduled_sampling": {}}, "training.scheduled_sampling"),
        ("pointer", "search", {"coverage_penalty": 0.2}, "search.coverage_penalty"),
        ("captioning", "search", {"max_length_factor": 2.0}, "search.max_length_factor"),
        ("pointer", "evaluation", {"robustness": {}}, "evaluation.robustness"),
    ],
)
def test_keys_without_effect_on_the_task(task, name, section, key):
    arguments = NodeArguments("Trainer", task)
    arguments.section(name, section)
    (line,) = problems(arguments)
    assert line.startswith(f"{key}: does not apply to the task {task}")


@pytest.mark.parametrize("kind", ["greedy", "beam", "sampling"])
def test_each_search_has_the_defaults_of_the_task(kind):
    arguments = NodeArguments("Predictor", "captioning")
    assert arguments.section("search", {"type": kind}).max_length_factor == 0.0
    arguments.check()


def test_the_tokenizer_of_another_component_may_be_shared():
    arguments = NodeArguments("Trainer", "translation")
    arguments.section("model", {"decoder": {"type": "luong", "pointer_generator": True}})
    arguments.section("training", None)
    arguments.section("search", None)
    arguments.check()


def test_a_section_that_the_task_does_not_have():
    arguments = NodeArguments("Trainer", "similarity")
    assert arguments.section("search", None) is None
    arguments.check()
    arguments.section("search", {"beam_size": 3})
    (line,) = problems(arguments)
    assert line.startswith("search:")


def test_keys_in_a_mapping_with_names_of_ones_own():
    arguments = NodeArguments("Tuner", "translation")
    arguments.parse("tune", TuneConfig, {"search_space": {"model.dropout": {"min": 0, "max": 1}}})
    assert [line.partition(": ")[0] for line in problems(arguments)] == [
        "tune.search_space.model.dropout.min",
        "tune.search_space.model.dropout.max",
    ]


LAYERS = {"type": "transformer", "units": 8}


@pytest.mark.parametrize(
    ("name", "value", "key", "part"),
    [
        ("model", {"hidden_size": 8}, "hidden_size", "Did you mean model.encoder.units or"),
        ("model", {"learning_rate": 8}, "learning_rate", "Did you mean training.learning_rate?"),
        ("model", {"encoder": {"type": "lstm"}}, "encoder.type", "Did you mean recurrent?"),
        ("model", {"encoder": LAYERS}, "encoder.units", "type: recurrent"),
        ("model", {"encoder": [LAYERS]}, "encoder.0.units", "type: recurrent or convolutional"),
        ("model", {"embedding": None}, "embedding", "null was given"),
        ("model", [], "", "a mapping"),
        ("training", {"max_epochs": "3"}, "max_epochs", "number or null"),
        ("training", {"guided_alignment": {}}, "guided_alignment.links", "is missing: "),
        ("training", {3: 4}, "3", "strings"),
        ("search", {"beam_size": 2, "type": "greedy"}, "beam_size", "type: beam"),
    ],
)
def test_keys_and_values_get_the_suggestions_of_a_yaml_file(name, value, key, part):
    arguments = NodeArguments("Trainer", "translation")
    assert arguments.section(name, value) is None
    (line,) = problems(arguments)
    assert line.startswith(f"{name}.{key}".removesuffix(".") + ": ")
    assert part in line
    values = {"name": "x", "task": "translation", "data": {"train": "x"}, name: value}
    (problem,) = validate_values(values)[1]
    own = problem.message  # unless it names other toolkits
    assert line.endswith(own) or own.startswith("unknown key. hidden_size ")


def test_an_unknown_task_is_one_problem():
    arguments = NodeArguments("Trainer", "translatio")
    assert arguments.section("model", {"anything": 1}) is None
    (line,) = problems(arguments)
    assert line.startswith("task:")
    assert "translation" in line


def test_a_missing_channel_is_a_problem():
    arguments = NodeArguments("Trainer", "translation")
    arguments.check_channels({"examples": Examples}, {"examples": None})
    (line,) = problems(arguments)
    assert line.startswith("examples:")


def test_files_are_digested_and_missing_ones_reported(tmp_path):
    (tmp_path / "a").write_text("a")
    arguments = NodeArguments("Trainer", "translation")
    files = {"source": str(tmp_path / "a"), "target": str(tmp_path / "b")}
    digests = arguments.digests(("model", "pretrained"), files)
    assert list(digests) == ["source"]
    (line,) = problems(arguments)
    assert line.startswith("model.pretrained.target:")
