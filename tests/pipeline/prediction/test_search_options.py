"""Models with another search than the one that they were exported with."""

import json
import shutil
from types import SimpleNamespace

import keras
import pytest

import regard
from regard.components.settings.trainer import TrainerConfig
from regard.components.trainer import export
from regard.components.trainer.export import InMemoryModel, RebuiltModel
from regard.core.errors import UserError
from regard.pipeline.cli.predict import predict
from regard.pipeline.cli.score import score
from regard.pipeline.prediction import models
from regard.pipeline.prediction.search_options import load_with_search
from regard.serving.contract import CONTRACT, TRAINING, read_contract
from regard.serving.saved_model import load
from tests.models.tasks.exported import config, export_model
from tests.tolerances import close_to

SIDES = {"type": "recurrent", "units": 8}, {"type": "luong", "units": 8}
ROWS = [{"source": text} for text in ("a cat sat", "the dog ran far away", "a")]
SEARCH = {"type": "beam", "beam_size": 3, "length_penalty": 0.0, "max_source_length": 20}


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    root = tmp_path_factory.mktemp("model")
    export_model(root, root / "saved", *SIDES, seed=11, search=SEARCH)()
    return root / "saved"


def outputs(model, name="serving_default"):
    return [dict(prediction.outputs) for prediction in model.predict(name, ROWS)]


def served(version, search):
    """The model as it would be exported with a search."""
    settings = {**config(*SIDES), "search": search, "task": "translation"}
    model = RebuiltModel(version, "model")
    return InMemoryModel(model.served(TrainerConfig.model_validate(settings).search))


def test_the_model_is_that_which_was_exported(version):
    exported = load(version)
    again = served(version, SEARCH)
    assert again.contract == exported.contract
    for new, old in zip(outputs(again, "align"), outputs(exported, "align"), strict=True):
        assert new["translation"] == old["translation"]
        assert new["alignment"] == close_to(old["alignment"])


SEARCHES = [
    ({"type": "greedy"}, {"type": "greedy"}),
    ({"n_best": 2}, {**SEARCH, "n_best": 2}),
    ({"beam_size": 5, "n_best": 4, "length_penalty": 1.0},) * 2,
    (
        {"samples": 3, "temperature": 0.5, "seed": 4},
        {"type": "sampling", "samples": 3, "temperature": 0.5, "seed": 4},
    ),
    (
        {"max_length": 3, "n_best": 2},
        {**SEARCH, "n_best": 2, "max_length_factor": 0.0, "max_length_offset": 3},
    ),
]


@pytest.mark.parametrize(("options", "search"), SEARCHES)
def test_options_replace_settings_of_the_search(version, monkeypatch, options, search):
    searches = []
    monkeypatch.setattr(
        RebuiltModel, "served", lambda self, search: searches.append(search) or SimpleNamespace()
    )
    monkeypatch.setattr(export, "InMemoryModel", lambda served: served)
    load_with_search(version, options)
    settings = {**config(*SIDES), "search": {"max_source_length": 20, **search}}
    expected = TrainerConfig.model_validate({**settings, "task": "translation"}).search
    assert searches == [expected]


@pytest.mark.slow  # the settings of the search are those of the test above
@pytest.mark.parametrize(("options", "search"), SEARCHES[1:])
def test_outputs_are_those_of_a_model_with_that_search(version, options, search):
    search = {"max_source_length": 20, **search}
    expected = outputs(served(version, search), "nbest")
    for new, old in zip(
        outputs(load_with_search(version, options), "nbest"), expected, strict=True
    ):
        assert new["hypotheses"] == old["hypotheses"]
        assert new["scores"] == pytest.approx(old["scores"], rel=1e-5)


@pytest.mark.slow
def test_a_beam_of_one_is_greedy_search(version):
    beam, greedy = (
        [row["translation"] for row in outputs(load_with_search(version, options))]
        for options in ({"beam_size": 1}, {"type": "greedy"})
    )
    assert beam == greedy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_best": 4}, "search.n_best: 4 is more than beam_size: 3"),
        ({"beam_size": 0}, "search.beam_size: must be greater than or equal to 1; 0 was given"),
        ({"beam_size": 40}, "search.beam_size: 40 is more than the 23 tokens"),
        ({"top_p": 2.0}, "search.top_p: must be less than or equal to 1; 2.0 was given"),
        ({"temperature": 1.0, "beam_size": 3}, "unknown key for this type; it goes with"),
        ({"type": "magic"}, "search.type: 'magic' is not a choice. Choices: greedy, beam"),
        ({"max_length": 0}, "every hypothesis would be empty"),
        ({"max_length": 2**31}, "search.max_length_offset: must be less than or equal to 1000000"),
    ],
)
def test_invalid_options_are_reported_as_in_a_yaml_file(version, options, message):
    with pytest.raises(UserError, match=r"^search") as caught:
        load_with_search(version, options)
    assert message in caught.value.message


def test_a_model_without_its_settings_is_refused(version, tmp_path):
    for content, message in (
        (b"broken", "The model cannot be built again"),
        (None, "without its settings"),
    ):
        path = tmp_path / str(content) / "model"
        (path / TRAINING).parent.mkdir(parents=True)
        if content:
            (path / TRAINING).write_bytes(content)
        with pytest.raises(UserError, match=message):
            load_with_search(path, {"n_best": 2})


def test_lists_of_outputs(version, capfd, monkeypatch):
    model = load_with_search(version, {"n_best": 2})
    monkeypatch.setattr(models, "load_with_search", lambda *_: model)
    texts = ["a cat\tsat", " "]
    predict(str(version), texts, n_best=2, with_score=True)
    lines = [line.split("\t") for line in capfd.readouterr().out.splitlines()]
    assert [line[1] for line in lines] == ["a cat sat", "a cat sat", " "]
    assert lines[2] == ["", " ", ""]
    # `regard score` reads such lines.
    score(str(version), [cell for line in lines[:2] for cell in line[1:]])
    scores = [float(line) for line in capfd.readouterr().out.splitlines()]
    assert float(lines[0][0]) >= float(lines[1][0])
    assert scores == pytest.approx([float(line[0]) for line in lines[:2]], abs=5.0)
    predict(str(version), texts, n_best=2, as_json=True)
    fields = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    translations = [hypothesis["translation"] for hypothesis in fields[0]["hypotheses"]]
    assert translations == [line[2] for line in lines[:2]]
    assert fields[1] == {"source": " ", "hypotheses": [{"translation": "", "score": None}]}


def test_one_output_with_its_score(version, capfd):
    predict(str(version), ["a cat sat"], with_score=True)
    number, text = capfd.readouterr().out.rstrip("\n").split("\t")
    (expected,) = load(version).predict("serving_default", ROWS[:1])
    assert (float(number), text) == (close_to(expected.score), expected.hypothesis)


def test_options_combine_with_a_prefix_but_not_lists(version, capfd):
    predict(str(version), ["a cat sat"], prefix="weg", beam_size=2)
    assert capfd.readouterr().out.startswith("weg")
    with pytest.raises(UserError, match="cannot be combined"):
        predict(str(version), ["a cat sat"], prefix="weg", n_best=2)


def test_a_model_that_is_built_again_has_its_tags(version, tmp_path):
    contract = read_contract(version)
    assert (contract["tags"], contract["size"]["minus"]) == ([], 1)
    shutil.copytree(version, tmp_path / "tagged")
    content = json.dumps({**contract, "tags": ["de", "fr"]})
    (tmp_path / "tagged" / CONTRACT).write_text(content, encoding="utf-8")
    rebuilt = load_with_search(tmp_path / "tagged", {"type": "greedy"}).contract
    assert rebuilt["tags"] == ["de", "fr"]
    assert rebuilt["size"]["minus"] == 2  # neither the tag nor EOS counts


@pytest.mark.slow
def test_an_exported_model_has_the_tags_of_its_data(tmp_path):
    tags = {"names": ["de", "fr"]}
    export_model(tmp_path, tmp_path / "saved", *SIDES, seed=11, tags=tags)()
    contract = read_contract(tmp_path / "saved")
    assert contract["tags"] == ["de", "fr"]
    assert contract["size"]["minus"] == 2
    rebuilt = load_with_search(tmp_path / "saved", {"type": "greedy"}).contract
    assert (rebuilt["tags"], rebuilt["size"]) == (contract["tags"], contract["size"])


def test_search_and_lists_from_python(version):
    texts = [row["source"] for row in ROWS]
    predictions = regard.predict(version, texts, search={"beam_size": 5}, n_best=4)
    assert [len(one.hypotheses) for one in predictions] == [4, 4, 4]
    (best,) = regard.predict(version, texts[:1], search={"beam_size": 5})
    assert predictions[0].hypothesis == best.hypothesis
    assert best.hypotheses == ()
    assert predictions[0].score == close_to(best.score)
    samples = regard.predict(version, texts, search={"samples": 3, "seed": 4})
    assert [len(one.hypotheses) for one in samples] == [3, 3, 3]


def test_another_backend_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(UserError, match="Keras uses jax in this process"):
        load_with_search(tmp_path, {"beam_size": 2})
