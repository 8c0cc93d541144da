import pytest

from serving import saved_model
from tests import fake_models


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fake")
    fake_models.save(fake_models.sentencepiece_model(), folder / "saved")
    return saved_model.load(folder / "saved")


def test_answers_come_in_order_and_without_padding(loaded):
    sources = ["a b c", "", "a"]
    answers = saved_model.ask(saved_model.signature(loaded, "align"), sources)
    assert len(answers) == 3
    for answer in answers:
        shape = len(answer.target_pieces), len(answer.source_pieces)
        assert answer.alignment.shape == shape
    assert len(answers[0].source_pieces) > len(answers[2].source_pieces)


def test_the_default_signature_gives_text_and_score_alone(loaded):
    (answer,) = saved_model.ask(saved_model.signature(loaded, "serving_default"), ["a"])
    assert answer.alignment is None
    assert answer.source_pieces == []
    assert isinstance(answer.score, float)


def test_a_signature_that_is_missing_is_named():
    class Loaded:
        signatures = {"other": None}

    with pytest.raises(saved_model.SavedModelError, match=r"'align' \(there are: other\)"):
        saved_model.signature(Loaded, "align")
