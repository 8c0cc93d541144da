"""The task: its features, its signatures, its name."""

import pytest
import tensorflow as tf
from pydantic import ValidationError

from regard.components.common.tokenizers import read_tokenizers
from regard.models import tasks
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.text_to_text.settings import TextPreprocessingConfig, TextToTextModelConfig
from tests.models.tasks.task_parts import module_of, one_row
from tests.models.tasks.tokenizers import write_tokenizers


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    write_tokenizers(folder)
    return read_tokenizers(folder, tasks.describe("translation").text_features)


def test_preprocessing_gives_ids_and_lengths(tokenizers):
    inputs = {
        "source": tf.constant([["a cat"], ["the dog"]]),
        "target": tf.sparse.from_dense([["eine"], ["der Hund"]]),
    }
    settings = TextPreprocessingConfig(copies=False)
    result = tasks.get_preprocessing("translation").transform(inputs, tokenizers, settings)
    for side, texts in (("source", ["a cat", "the dog"]), ("target", ["eine", "der Hund"])):
        expected = tokenizers[side].tokenize(texts)
        assert result[f"{side}_ids"].to_list() == expected.to_list()
    lengths = [[len(ids)] for ids in result["target_ids"].to_list()]
    assert result["target_lengths"].to_list() == lengths
    module = module_of("translation", tokenizers=tokenizers)
    assert module.raw_inputs(one_row(result, 1)) == {"source": b"the dog"}


def test_preprocessing_with_tags(tokenizers):
    inputs = {
        "source": tf.constant([["a cat"], [" "], ["the dog"], ["\u3000\xa0"]]),
        "target": tf.constant([["eine"], ["der"], ["der"], ["der"]]),
        "lang": tf.constant([["de"], ["de"], ["fr"], ["de"]]),
    }
    task, settings = (
        tasks.get_preprocessing("translation"),
        TextPreprocessingConfig(tag_feature="lang"),
    )
    ids = task.transform(inputs, tokenizers, settings)["source_ids"]
    expected = tokenizers["source"].tokenize(["<de> a cat", " ", "<fr> the dog", " "])
    assert ids.to_list() == expected.to_list()
    assert ids[1].shape == [0]  # incomplete, as without tags
    without = task.transform(inputs, tokenizers, TextPreprocessingConfig())["source_ids"]
    expected = tokenizers["source"].tokenize(["a cat", " ", "the dog", " "])
    assert without.to_list() == expected.to_list()


def test_pairs_of_first_tokens_are_lists_in_files():
    settings = TextToTextModelConfig.model_validate({"first_tokens": [[93, 84], [94, 85]]})
    assert settings.first_tokens == ((93, 84), (94, 85))
    again = TextToTextModelConfig.model_validate(settings.model_dump(mode="json"))
    assert again.first_tokens == settings.first_tokens
    for invalid in ([[93]], [["93", 84]], [93, 84]):
        with pytest.raises(ValidationError):
            TextToTextModelConfig.model_validate({"first_tokens": invalid})


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match=r"translashun.*Choices: .*translation"):
        tasks.get_network("translashun")


@pytest.mark.parametrize(
    ("pretrained", "tied", "scaled"),
    [
        (None, "none", (True, True)),
        ({"source": "v.txt", "target": None}, "none", (False, True)),
        ({"source": None, "target": "v.txt"}, "none", (True, False)),
        ({"source": "v.txt", "target": None}, "all", (True, True)),
    ],
)
def test_only_a_side_with_vectors_of_others_is_not_scaled(pretrained, tied, scaled):
    """Random vectors that are not would be too small to learn from."""
    sections = {"encoder": {"units": 4}, "decoder": {"type": "luong", "units": 8}}
    settings = TextToTextModelConfig(
        embedding=8, pretrained=pretrained, tie_embeddings=tied, **sections
    )
    tokens = {"source": 9, "target": 9}
    model = tasks.get_network("translation").build(settings, TrainingConfig(), tokens)
    assert (model.encoder.embedding.scale, model.decoder.embedding.scale) == scaled
