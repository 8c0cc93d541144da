"""Random settings and damaged files: a configuration, or errors with lines, never a traceback."""

import random
import re
import types
import typing
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from regard.components.common.errors import UserError
from regard.models.settings.base import Problem
from regard.models.tasks import TASKS
from regard.pipeline.config import load
from regard.pipeline.config.annotations import models_in
from regard.pipeline.config.config import config_class
from regard.pipeline.config.load import validate_values

ROOT = Path(__file__).parents[3]
NUMBERS = (0, 1, 2, 3, 7, 16, 64, 1000, 10**11, -1, 0.0, 0.1, 0.5, 1.0, 1e9)
TEXTS = ("", "a", "bleu", "length", "source", "2026-01-01", "*/5 * * * *", "x=y", "a.tsv", "{SPAN}")
KEYS = ("bleu", "length", "Trainer", "a", "model.embedding")


def draw(annotation: Any, random_: random.Random, depth: int = 0) -> Any:
    """Return a value that an annotation may allow, as YAML gives it."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return draw(parts[0], random_, depth)
    if origin is Literal:
        return random_.choice(parts)
    if models := models_in(annotation):
        if type(None) in parts and random_.random() < 0.2:
            return None
        return draw_section(random_.choice(models), random_, depth + 1)
    if origin in (typing.Union, types.UnionType):
        return draw(random_.choice(parts), random_, depth)
    if origin in (tuple, list):
        return [draw(parts[0], random_, depth) for _ in range(random_.randint(0, 2))]
    if origin is dict:
        count = random_.randint(0, 2)
        return {random_.choice(KEYS): draw(parts[1], random_, depth) for _ in range(count)}
    if annotation is bool:
        return random_.random() < 0.5
    if annotation is int:
        return random_.choice([number for number in NUMBERS if isinstance(number, int)])
    if annotation is float:
        return random_.choice(NUMBERS)
    if annotation is str:
        return random_.choice(TEXTS)
    return random_.choice([None, *NUMBERS, *TEXTS])


def draw_section(model: type[BaseModel], random_: random.Random, depth: int = 0) -> dict:
    """Return some keys of a section, with its type if it is a variant."""
    fields = dict(model.model_fields)
    names = random_.sample(sorted(fields), min(len(fields), random_.randint(0, 3)))
    if "type" in fields:
        names.append("type")
    names += [name for name, field in fields.items() if field.is_required()]
    return {name: draw(fields[name].annotation, random_, depth) for name in dict.fromkeys(names)}


@pytest.mark.parametrize("task", TASKS)
def test_random_settings_are_valid_or_have_problems(task: str) -> None:
    random_, valid = random.Random(f"settings of {task}"), 0
    for _ in range(2500):
        values = draw_section(config_class(task), random_)
        values |= {"name": "x", "task": task}
        values["data"] = {**values.get("data", {}), "train": "a.jsonl"}
        config, problems = validate_values(values)
        assert all(isinstance(problem, Problem) and problem.message for problem in problems)
        assert config is not None or problems
        valid += not problems
    assert valid > 25


FILES = sorted(
    [*ROOT.glob("configs/*.yaml"), *ROOT.glob("models/tasks/*/starter.yaml")],
    key=lambda path: str(path),
)
LINE = re.compile(r"^( *)([a-z_]+):( .*)?$")


def damage(lines: list[str], random_: random.Random) -> list[str]:
    """Return the lines of a file with one mistake."""
    numbers = [number for number, line in enumerate(lines) if LINE.match(line)]
    number = random_.choice(numbers)
    match = LINE.match(lines[number])
    assert match is not None
    indent, key, value = match[1], match[2], match[3] or ""
    wrong = random_.choice(["3", "-1", "x", "[1]", "{a: b}", "null", "1e99", "!!bool maybe", "'"])
    changes = {
        "key": [f"{indent}{key[:-1]}:{value}"],
        "type": [f"{indent}{key}: {wrong}"],
        "indent": [f" {indent}{key}:{value}"],
        "anchor": [f"{indent}{key}: *missing"],
        "merge": [f"{indent}<<: *{key}"],
        "duplicate": [lines[number], lines[number]],
        "tab": [f"{indent}\t{key}:{value}"],
        "none": [],
    }
    return [*lines[:number], *random_.choice(list(changes.values())), *lines[number + 1 :]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_damaged_files_are_valid_or_have_lines(path: Path, tmp_path: Path) -> None:
    lines, random_, wrong = path.read_text().splitlines(), random.Random(path.name), 0
    copy = tmp_path / "x.yaml"
    for _ in range(25):
        copy.write_text("\n".join(damage(lines, random_)) + "\n")
        try:
            load(copy)
        except UserError as error:
            wrong += 1
            for line in error.message.splitlines():
                assert re.match(rf"{re.escape(str(copy))}:\d+: ", line), line
    assert wrong > 5
