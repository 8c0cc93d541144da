import inspect
import re
import subprocess
import sys
from typing import Annotated, ClassVar

import pytest
from pydantic import Field

from regard.models import tasks
from regard.models.settings.annotations import sections_of
from regard.models.settings.base import Section
from regard.pipeline.config.config import config_class

SECTIONS = sorted(
    {
        model
        for task in tasks.TASKS.own
        for _, model in sections_of(config_class(task))
        if issubclass(model, Section)
    },
    key=lambda model: (model.__module__, model.__qualname__),
)


class Oven(Section):
    """An oven.

    It is hot.

    Attributes:
        degrees: How hot it is, with a text that
            continues: here.
        guests: Who comes.
    """

    degrees: Annotated[int, Field(ge=1, examples=[200])] = 180
    guests: list[str]
    minutes: int = Field(default=2 * 20, description=f"Minutes; {2 * 20} by default.")


class SmallOven(Oven):
    """A small oven.

    Attributes:
        degrees: At most 100.
        implementation: Not a key.
    """

    implementation: ClassVar[str] = "ovens:SmallOven"
    degrees: int = 90
    guests: list[str] = []


def test_the_docstring_describes_the_keys():
    descriptions = {name: field.description for name, field in Oven.model_fields.items()}
    assert descriptions == {
        "degrees": "How hot it is, with a text that continues: here.",
        "guests": "Who comes.",
        "minutes": "Minutes; 40 by default.",
    }
    assert SmallOven.model_fields["degrees"].description == "At most 100."
    assert SmallOven.model_fields["guests"].description == "Who comes."
    assert SmallOven(guests=["a"]).degrees == 90
    assert SmallOven.implementation == "ovens:SmallOven"


def test_defaults_examples_and_limits_stay():
    field = Oven.model_fields["degrees"]
    assert (field.default, field.examples) == (180, [200])
    assert Oven.model_fields["guests"].is_required()
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        Oven(degrees=0, guests=[])


def test_the_schema_describes_a_section_without_its_keys():
    assert Oven.model_json_schema()["description"] == "An oven.\n\nIt is hot."


@pytest.mark.parametrize("model", SECTIONS, ids=lambda model: model.__qualname__)
def test_every_key_has_a_description_and_every_description_a_key(model):
    assert [name for name, field in model.model_fields.items() if not field.description] == []
    listed = inspect.cleandoc(model.__doc__).partition("Attributes:\n")[2]
    assert set(re.findall(r"^    (\w+): ", listed, re.MULTILINE)) <= set(model.model_fields)


def test_without_docstrings_sections_have_no_descriptions():
    code = """
from regard.pipeline.config.reference import config_reference, json_schema
from regard.pipeline.config.config import config_class
config_reference("similarity"), json_schema("similarity")
print(config_class("similarity").model_fields["training"].description)
"""
    command = [sys.executable, "-B", "-OO", "-c", code]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout == "None\n"
