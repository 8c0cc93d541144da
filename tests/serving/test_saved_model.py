from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from regard.serving import saved_model
from regard.serving.contract import CONTRACT, SavedModelError
from tests import fake_models, fake_tasks


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fake")
    fake_models.save(fake_models.sentencepiece_model(), folder / "saved")
    return saved_model.load(folder / "saved")


def sources(*texts):
    return [{"source": text} for text in texts]


def test_answers_come_in_order_and_without_padding(loaded):
    answers = loaded.predict("align", sources("a b c", "", "a"))
    assert len(answers) == 3
    for answer in answers:
        tokens = [answer.outputs[name] for name in ("target_pieces", "source_pieces")]
        assert answer.outputs["alignment"].shape == tuple(map(len, tokens))
    lengths = [answer.outputs["source_length"] for answer in answers]
    assert lengths == [len(answer.outputs["source_pieces"]) for answer in answers]
    assert lengths[0] > lengths[2] > lengths[1]
    assert answers[0].outputs["source_pieces"] == ["a", " ", "b", " ", "c", "</s>"]
    assert answers[0].truncated == 0


def test_the_default_signature_gives_text_and_score_alone(loaded):
    (answer,) = loaded.predict("serving_default", sources("a"))
    assert set(answer.outputs) == {"translation", "score"}
    assert answer.hypothesis == "A"
    assert isinstance(answer.score, float)
    assert answer.truncated == 0  # the signature does not tell


def test_what_is_kept_does_not_hold_the_padded_batch(loaded):
    _, short = loaded.predict("align", sources("a" * 90, "a"))
    assert short.outputs["alignment"].base is None


def test_an_empty_request_has_no_answers(loaded):
    assert loaded.predict("align", []) == []


def test_points_are_padded_and_positions_given_back(tmp_path):
    model = saved_model.load(fake_models.save(fake_tasks.Sorter(), tmp_path / "m"))
    rows = [{"points": [[3, 0], [1, 0], [2, 0]]}, {"points": np.array([[-1.0, 0.0], [-2.0, 5.0]])}]
    answers = model.predict("align", rows)
    assert [answer.hypothesis for answer in answers] == [[1, 2, 0], [1, 0]]
    assert answers[1].score == -0.5
    assert answers[1].outputs["pointing"].tolist() == [[0, 1], [1, 0]]
    assert model.predict("align", []) == []


def test_an_image_goes_as_its_bytes(tmp_path):
    model = saved_model.load(fake_models.save(fake_tasks.Namer(), tmp_path / "m"))
    answers = model.predict(
        "align", [{"image": fake_tasks.png(3, 4)}, {"image": fake_tasks.png(1, 9)}]
    )
    assert [answer.hypothesis for answer in answers] == ["3 by 4", "1 by 9"]
    assert answers[0].outputs["alignment"].shape == (2, 2, 2)
    assert answers[0].outputs["target_pieces"] == ["3", "4"]


def test_a_source_that_is_too_long_is_refused(tmp_path):
    model = saved_model.load(fake_models.save(fake_models.Reverser("refuse"), tmp_path / "m"))
    with pytest.raises(saved_model.InputLengthError) as caught:
        model.predict("serving_default", sources("ab", "a" * 101))
    assert str(caught.value) == "a source has more than the 100 tokens of max_source_length"


def test_too_few_points_are_refused(tmp_path):
    model = saved_model.load(fake_models.save(fake_tasks.Sorter(min_points=3), tmp_path / "m"))
    with pytest.raises(saved_model.InputLengthError) as caught:
        model.predict("align", [{"points": [[3, 0], [1, 0]]}])
    assert str(caught.value) == "a row has fewer than the 3 points of model.min_points"
    assert caught.value.is_too_short


def test_a_signature_that_is_missing_is_named(tmp_path):
    path = fake_models.save(fake_models.Reverser(), tmp_path / "m", align=False)
    message = "'align'. The signatures are: score, serving_default"
    with pytest.raises(SavedModelError, match=message):
        saved_model.load(path).predict("align", sources("a"))


def changed(**changes):
    return {**fake_models.Reverser().contract(), **changes}


def promising(outputs=None, **source):
    """A contract whose default signature takes another input, or promises other outputs."""
    inputs = [{"name": "source", "kind": "text", **source}]
    return changed(
        signatures={"serving_default": {"inputs": inputs, "outputs": outputs or {"score": []}}}
    )


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        (
            promising(name="text"),
            r"has the inputs source: string\[batch\]; expected text: string\[batch\]",
        ),
        (
            promising(kind="points"),
            r"expected source: float32\[batch, n, 2\], source_length: int32\[batch\]",
        ),
        (
            promising({"translation": [], "looks": []}),
            "serving_default has no output looks",
        ),
        (
            promising({"translation": ["source_length"]}),
            "output translation has 1 dimensions; expected 2",
        ),
    ],
)
def test_a_model_that_breaks_its_contract_is_rejected(tmp_path, contract, message):
    model = fake_models.save(fake_models.Reverser(), tmp_path / "m", contract=contract)
    with pytest.raises(SavedModelError, match=message):
        saved_model.load(model).signature("serving_default")


def test_an_output_without_a_batch_axis_is_rejected(tmp_path):
    model = saved_model.load(fake_models.save(fake_models.Reverser("flat"), tmp_path / "m"))
    with pytest.raises(SavedModelError, match=r"output score has shape \(\) for a batch of 2"):
        model.predict("serving_default", sources("a", "b"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "exported by an older Regard or by another program"),
        ("{", "is not valid JSON"),
        ('{"task": "translation"}', "has no inputs, answer, answer_kind, score"),
        (
            json.dumps(promising(kind="sound")),
            r"unknown kinds: sound",
        ),
    ],
)
def test_a_missing_or_broken_contract_is_rejected(tmp_path, text, message):
    path = fake_models.save(fake_models.Reverser(), tmp_path / "m")
    (path / CONTRACT).unlink()
    if text is not None:
        (path / CONTRACT).write_text(text)
    with pytest.raises(SavedModelError, match=message):
        saved_model.load(path)


def test_importing_it_imports_neither_tensorflow_nor_anything_of_ours():
    code = (
        "import sys, regard.serving.saved_model\n"
        "print(sorted({'tensorflow', 'regard.models', 'regard.components'} & set(sys.modules)))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert completed.stdout.strip() == "[]"
