"""The inputs of a model that changes the train split."""

from regard.components.augmenter.model_pass import ModelPass
from regard.components.settings.trainer import StartingModel


def test_the_tag_begins_the_first_input_and_a_text_with_another_one_is_blank():
    starting_model = StartingModel(model="deep@1", path="", digest="")
    reverse = ModelPass(starting_model, {"source": "target", "target": "source"}, tag="de-en")
    assert [feature.name for feature in reverse.features] == ["target", "source"]
    inputs = reverse.row_inputs(["a", "<de-en> b"], ["de-en", "en-de"])
    assert inputs == {"source": "<de-en> a", "target": "<de-en> b"}
    of_rows = ModelPass(starting_model, {"source": "source"}, tag_feature="language")
    assert [feature.name for feature in of_rows.features] == ["source", "language"]
    assert of_rows.row_inputs(["a", "fr"], ["fr"]) == {"source": "<fr> a"}
    assert of_rows.row_inputs(["", "fr"], ["fr"]) == {"source": ""}
    inputs = reverse.row_inputs(["b \uff1cEN-DE> c", "a"], ["de-en", "en-de"])
    assert inputs == {"source": "", "target": "a"}
    untagged = ModelPass(starting_model, {"source": "source"})
    assert untagged.row_inputs(["<de> a"], []) == {"source": "<de> a"}
