import pytest

from regard.models.serialization import by_name, spec


class One:
    def __init__(self, size=3, name="one"):
        self.size, self.name = size, name


CHOICES = {"one": One, "other": dict}


@pytest.mark.parametrize(
    ("value", "size"),
    [("one", 3), ({"type": "one"}, 3), ({"type": "one", "size": 5}, 5)],
)
def test_a_spec_is_a_name_with_or_without_options(value, size):
    created = spec("number", CHOICES, value, name="mine")
    assert (type(created), created.size, created.name) == (One, size, "mine")


def test_a_spec_is_left_as_it_was():
    value = {"type": "one", "size": 5}
    spec("number", CHOICES, value)
    assert value == {"type": "one", "size": 5}


@pytest.mark.parametrize("value", ["oen", {"type": "oen", "size": 4}])
def test_an_unknown_name_is_refused_with_the_nearest(value):
    with pytest.raises(ValueError, match=r"Unknown number 'oen'.*one.*Choices: one, other"):
        spec("number", CHOICES, value)


def test_options_without_a_type_are_refused():
    with pytest.raises(ValueError, match=r"number.*'type'.*'size': 4"):
        spec("number", CHOICES, {"size": 4})


def test_an_option_that_there_is_not_is_refused():
    with pytest.raises(TypeError, match="length"):
        spec("number", CHOICES, {"type": "one", "length": 4})


def test_by_name_names_all_choices_when_nothing_is_near():
    with pytest.raises(ValueError, match=r"Unknown number 'xyz'\. Choices: one, other\.$"):
        by_name("number", CHOICES, "xyz")
