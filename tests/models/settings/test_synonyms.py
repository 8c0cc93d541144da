"""The names of other toolkits."""

from regard.models.metrics import METRICS
from regard.models.settings.synonyms import SYNONYMS
from regard.models.settings.validation_errors import unknown
from regard.pipeline.config.config import config_class


def test_names_are_in_small_letters():
    assert all(name == name.lower() for name in SYNONYMS)


def test_they_are_suggested():
    assert "Did you mean recurrent? " in unknown("LSTM", ["lstn", "recurrent"])


def test_they_stand_for_names_of_ours():
    schema = str(config_class("translation").model_json_schema())
    missing = {name for name in SYNONYMS.values() if f"'{name}'" not in schema}
    assert missing <= set(METRICS)
