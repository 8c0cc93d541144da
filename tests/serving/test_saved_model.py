import json
import re
import subprocess
import sys

import numpy as np
import pytest

from regard.serving import saved_model
from regard.serving.contract import CONTRACT, SavedModelError
from tests import fake_models, fake_tasks
from tests.tolerances import assert_close


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fake")
    fake_models.save(fake_models.sentencepiece_model(), folder / "saved")
    return saved_model.load(folder / "saved")


@pytest.fixture(scope="module")
def reverser(tmp_path_factory):
    """A saved model; tests replace its contract."""
    return fake_models.save(fake_models.Reverser(), tmp_path_factory.mktemp("reverser") / "m")


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


def test_many_rows_are_divided_among_the_cores(loaded, monkeypatch):
    texts = ["ab c"[: length % 5] for length in range(50)]
    expected = [loaded.predict("align", sources(text))[0] for text in texts]
    sizes = []
    run = loaded.run

    def record(name, inputs):
        sizes.append(len(inputs["source"]))
        return run(name, inputs)

    monkeypatch.setattr(loaded, "run", record)
    for device, cores, parts in (
        ("CPU", 2, [25, 25]),
        ("CPU", 16, [2, 16, 16, 16]),
        ("GPU", 2, [50]),
    ):
        monkeypatch.setattr(loaded, "device", device)
        monkeypatch.setattr(saved_model, "count_cores", lambda cores=cores: cores)
        answers = loaded.predict("align", sources(*texts))
        assert [answer.hypothesis for answer in answers] == [
            answer.hypothesis for answer in expected
        ]
        for answer, other in zip(answers, expected, strict=True):
            assert_close(answer.outputs["alignment"], other.outputs["alignment"])
        assert sorted(sizes) == parts
        sizes.clear()


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


def promising(outputs=None, **source):
    """A contract whose default signature takes another input, or promises other outputs."""
    inputs = [{"name": "source", "kind": "text", **source}]
    signature = {"inputs": inputs, "outputs": outputs or {"score": []}}
    return {**fake_models.Reverser().contract(), "signatures": {"serving_default": signature}}


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        (promising(name="text"), "the inputs source: string[batch]; expected text: string[batch]"),
        (
            promising(kind="points"),
            "expected source: float32[batch, n, dimensions], source_length: int32[batch]",
        ),
        (promising({"translation": [], "looks": []}), "serving_default has no output looks"),
        (promising({"translation": ["source_length"]}), "translation has 1 dimensions; expected 2"),
    ],
)
def test_a_model_that_breaks_its_contract_is_rejected(reverser, contract, message):
    (reverser / CONTRACT).write_text(json.dumps(contract))
    with pytest.raises(SavedModelError, match=re.escape(message)):
        saved_model.load(reverser).signature("serving_default")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "exported by an older Regard or by another program"),
        ("{", "is not valid JSON"),
        ('{"task": "translation"}', "has no answer, answer_kind, cut, detail, inputs"),
        (json.dumps(promising(kind="sound")), "unknown kinds: sound"),
        (json.dumps({**promising(), "answer_kind": "sound"}), "unknown kind 'sound'"),
    ],
)
def test_a_missing_or_broken_contract_is_rejected(reverser, text, message):
    (reverser / CONTRACT).unlink(missing_ok=True)
    if text is not None:
        (reverser / CONTRACT).write_text(text)
    with pytest.raises(SavedModelError, match=message):
        saved_model.load(reverser)


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("saved_model", {"tensorflow", "regard.models", "regard.components"}),
        ("supported_ops", {"tensorflow", "regard.models"}),
    ],
)
def test_imports_are_light(module, absent):
    code = f"import sys, regard.serving.{module}; print({absent} & set(sys.modules))"
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert output.strip() == "set()"
