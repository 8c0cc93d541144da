"""The reference and the JSON schema agree with the models; the starters are valid."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from regard.components.settings.task_keys import inapplicable_keys
from regard.core.errors import UserError
from regard.core.yaml_text import from_yaml
from regard.models.settings.annotations import models_in
from regard.models.tasks import TASKS
from regard.pipeline.compare.matrix import comparison_schema
from regard.pipeline.config import load
from regard.pipeline.config.config import config_class
from regard.pipeline.config.reference import (
    config_reference,
    json_schema,
    starter,
    write_starter,
)
from tests.pipeline.config.refusals import problems_of
from tests.test_docs import BASE, PAGES, blocks, merged


@pytest.mark.parametrize("task", TASKS)
def test_reference_loads_to_the_defaults(task: str, tmp_path: Path) -> None:
    path = tmp_path / "reference.yaml"
    path.write_text(config_reference(task), encoding="utf-8")
    inputs = yaml.safe_load(path.read_text())
    minimal = tmp_path / "minimal.yaml"
    content = {"name": "quickstart", "task": task, "data": {"train": inputs["data"]["train"]}}
    minimal.write_text(yaml.safe_dump(content))
    assert load(path, home=tmp_path) == load(minimal, home=tmp_path)


@pytest.mark.parametrize("task", TASKS)
def test_reference_shows_and_explains_every_key(task: str) -> None:
    lines = config_reference(task).splitlines()
    assert max(map(len, lines)) <= 100
    for path, field in _all_fields(config_class(task)):
        if field.annotation is type(None):  # no section of this task
            continue
        assert field.description, path
        assert field.description.rstrip().endswith("."), path
        if not any(path[:length] in inapplicable_keys(task) for length in range(len(path) + 1)):
            name = path[-1]
            keys = [i for i, line in enumerate(lines) if line.lstrip("# ").startswith(f"{name}:")]
            assert keys, path


def test_other_variants_are_shown_as_comments() -> None:
    text = config_reference("translation")
    assert "    #   type: exponential\n" in text
    assert "  #   type: greedy\n" in text
    assert "    #   decay_steps: 1000\n" in text


@pytest.mark.parametrize("task", TASKS)
def test_the_defaults_of_sections_agree_with_the_schema(task: str) -> None:
    schema = json_schema(task)
    for name, section in schema["properties"].items():
        if "default" in section:
            part = {"$defs": schema["$defs"], **section}
            errors = list(Draft202012Validator(part).iter_errors(section["default"]))
            assert errors == [], name


def test_schema_has_descriptions_choices_and_strictness() -> None:
    content = json.loads(json.dumps(json_schema("translation")))
    assert content["$schema"].startswith("https://json-schema.org/")
    assert content["required"] == ["name", "data"]
    tokenizer = content["$defs"]["TokenizerConfig"]
    assert tokenizer["additionalProperties"] is False
    choices, reference = tokenizer["properties"]["type"]["anyOf"]
    assert choices["enum"] == ["unigram", "bpe", "char", "word"]
    assert reference["pattern"] == r"\$\{"
    assert "SentencePiece" in tokenizer["properties"]["type"]["description"]
    assert len(content["properties"]["search"]["anyOf"]) == 3


ROOT = Path(__file__).parents[3]
COMPARISONS = sorted(ROOT.glob("configs/compare/*.yaml"))


def _problems(values: dict[str, Any], schema: dict[str, Any] | None = None) -> list[str]:
    """Return the keys that the JSON schema rejects."""
    schema = schema or json_schema(values.get("task", "translation"))
    errors = Draft202012Validator(schema).iter_errors(values)
    return [".".join(map(str, error.absolute_path)) for error in errors]


@pytest.mark.parametrize("file", sorted(ROOT.glob("configs/*.yaml")), ids=lambda file: file.name)
def test_schema_accepts_shipped_configurations(file: Path) -> None:
    assert _problems(from_yaml(file.read_text())) == []


@pytest.mark.parametrize("task", [*TASKS, "quickstart"])
def test_schema_accepts_what_is_written(task: str, tmp_path: Path) -> None:
    schema = json.loads(write_starter(task, tmp_path / "mine.yaml").read_text())
    first, *_ = (tmp_path / "mine.yaml").read_text().splitlines()
    file = first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads((tmp_path / file).read_text()) == schema
    assert _problems(from_yaml((tmp_path / "mine.yaml").read_text()), schema) == []
    if task in TASKS:
        assert _problems(from_yaml(config_reference(task)), schema) == []


def test_schema_accepts_the_examples_of_the_documentation() -> None:
    examples = 0
    for page in PAGES:
        earlier: dict[str, Any] = BASE
        for block in blocks(page, "yaml", marked=False):
            values = from_yaml(block)
            if "base" in values:  # a comparison
                continue
            joined = merged(earlier, values)
            assert [] in (_problems(joined), _problems(merged(BASE, values))), (page, block)
            examples += 1
            earlier = joined
    assert examples > 40


def test_schema_rejects_mistakes() -> None:
    values: dict[str, Any] = {"name": "x", "data": {"train": "a.tsv"}}
    assert _problems(values | {"training": {"max_epochs": "${EPOCHS}"}, "search": {}}) == []
    assert _problems(values | {"training": {"max_epochs": "many"}}) == ["training.max_epochs"]
    assert _problems(values | {"tokenizer": {"type": "words"}}) == ["tokenizer.type"]
    assert _problems(values | {"model": {"attention": {"score": "genral"}}}) == ["model.attention"]
    assert _problems(values | {"modle": {}}) == [""]


@pytest.mark.parametrize("file", COMPARISONS, ids=lambda file: file.name)
def test_schema_of_comparisons(file: Path) -> None:
    values = from_yaml(file.read_text())
    assert _problems(values, comparison_schema()) == []
    assert _problems({**values, "modle": 1}, comparison_schema()) == [""]


def test_sections_of_other_packages_are_shown(tmp_path: Path, install_plugin) -> None:
    install_plugin()
    assert "    #   type: bilinear\n" in config_reference("translation")
    assert "    #   rank: 8\n" in config_reference("dialogue")
    content = json.loads(json.dumps(json_schema("translation")))
    (score,) = (
        variant
        for variant in content["$defs"]["DecoderAttentionConfig"]["properties"]["score"]["anyOf"][
            1
        ]["anyOf"]
        if variant.get("title") == "BilinearScoreConfig"
    )
    assert score["properties"]["rank"]["anyOf"][0]["minimum"] == 1
    assert starter("dialogue", "chat").startswith("name: chat\n")
    text = "name: x\ndata: {train: a.tsv}\nmodel: {attention: {score: %s, alignment: %s}}\n"
    lines = problems_of(tmp_path, text % ("biliner", "{type: sharp, faktor: 2}"))
    assert len(lines) == 2
    assert "score.type: 'biliner' is not a choice. Did you mean bilinear?" in lines[0] + lines[1]
    assert "sharp" not in lines[0] + lines[1]
    assert "alignment.faktor: unknown key. Did you mean factor?" in lines[0] + lines[1]
    lines = problems_of(tmp_path, text % ("{type: bilinear, rank: x}", "soft"))
    assert lines == ["3: model.attention.score.rank: a whole number is expected, 'x' was given"]


@pytest.mark.parametrize("task", TASKS)
def test_starter_is_a_valid_configuration(task: str, tmp_path: Path) -> None:
    path = tmp_path / "my-model.yaml"
    write_starter(task, path)
    config = load(path, home=tmp_path)
    assert (config.task, config.name) == (task, "my-model")
    content = path.read_text()
    assert "NAME" not in content
    assert content.count("#") > 10
    assert "regard predict my-model" in content


def test_an_example_is_renamed(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    write_starter("quickstart", path)
    assert load(path, home=tmp_path).name == "mine"
    assert f"regard run {path}\n" in path.read_text()
    with pytest.raises(UserError, match="is not a task"):
        write_starter("../configs/quickstart", path)


def test_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\n")
    with pytest.raises(UserError, match="already exists"):
        write_starter("translation", path)
    assert path.read_text() == "name: mine\n"


@pytest.mark.parametrize(
    ("task", "file", "message"),
    [
        ("captoning", "x.yaml", "'captoning' is not a task. Did you mean captioning"),
        ("translation", "My Model.yaml", "'My Model' is not a valid name"),
    ],
)
def test_invalid_task_or_name(task: str, file: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        write_starter(task, tmp_path / file)
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


def _all_fields(model: type, path: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Yield the fields of a section, and of the sections in it, with their keys as paths."""
    for name, field in model.model_fields.items():  # type: ignore[attr-defined]
        yield (*path, name), field
        for part in models_in(field.annotation):
            yield from _all_fields(part, (*path, name))
