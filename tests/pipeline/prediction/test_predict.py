import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from regard.core.errors import UserError
from regard.core.native_output import silence_output
from regard.pipeline.cli.predict import predict
from regard.pipeline.cli.score import score
from regard.pipeline.prediction import predict as prediction
from regard.pipeline.prediction.input_rows import InputParser
from regard.pipeline.prediction.models import open_model
from regard.pipeline.prediction.output_format import one_line
from regard.serving.contract import CONTRACT
from tests import fake_models, fake_tasks

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def model(tmp_path_factory, save_model):
    """A model that reverses a text and writes it in capitals."""
    return save_model(tmp_path_factory.mktemp("model") / "m", fake_models.Reverser)


@pytest.fixture(scope="module")
def others(tmp_path_factory, save_model):
    """A model of two texts, one of points, one of images and one of questions."""
    folder = tmp_path_factory.mktemp("others")
    for name in ("Matcher", "Sorter", "Namer", "Finder"):
        save_model(folder / name, getattr(fake_tasks, name))
    (folder / "a.png").write_bytes(fake_tasks.png(3, 4))
    return folder


def _predict(path, *texts, align=False):
    loaded, _ = open_model(str(path), path)
    signature = loaded.contract["detail"] if align else "serving_default"
    rows = list(InputParser(loaded.contract).parse_arguments(texts))
    return prediction.predict_rows(loaded, str(path), [rows], signature)


@pytest.fixture
def printed(capfd):
    """Return the output of the command for a model and texts."""

    def printed(path, *texts, **options):
        predict(str(path), list(texts), **options)
        return capfd.readouterr().out

    return printed


def _from_standard_input(path, text: str) -> tuple[int, str, str]:
    completed = subprocess.run(
        [sys.executable, "-m", "regard.pipeline.cli", "predict", str(path)],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return completed.returncode, completed.stdout, completed.stderr


def test_predictions_and_attention(model):
    answers = list(_predict(model, "ab", " ", "c"))
    assert [row.typed["source"] for row, _ in answers] == ["ab", " ", "c"]
    assert [one_line(answer) for _, answer in answers] == ["BA", "", "C"]
    assert [answer and answer.score for _, answer in answers] == [-1.0, None, -0.5]
    _, (_, short) = _predict(model, "abc", "d", align=True)
    assert short.outputs["alignment"].tolist() == [[1.0, 0.0], [0.0, 1.0]]  # without padding


def test_predict_from_standard_input_prints_only_predictions(model):
    completed = _from_standard_input(model, "good morning\n\nüber\n")
    assert completed == (0, "GNINROM DOOG\n\nREBÜ\n", "")


def test_predict_with_alignment(model, printed):
    lines = printed(model, "ab", align=True).splitlines()
    assert lines[:2] == ["BA", "      a  b  </s>"]
    assert lines[2:] == ["   B     ██", "   A  ██", "</s>        ████", ""]


def test_predict_json(model, printed):
    lines = printed(model, "a" * 101, " ", align=True, as_json=True).splitlines()
    one, empty = map(json.loads, lines)
    assert list(one) == ["source", "translation", "score", "alignment", "source_cut"]
    assert one["source_cut"] == 1
    assert one["alignment"]["target"] == [*["A"] * 100, "</s>"]
    assert empty == {"source": " ", "translation": "", "score": None}


@pytest.fixture(scope="module")
def confident(tmp_path_factory, save_model):
    return save_model(tmp_path_factory.mktemp("confident") / "m", fake_models.Confident)


def test_uncertain_outputs_are_not_printed(confident, capfd):
    texts = ["a", "abc", " ", "abcd"]  # with 0.61, 0.22, no prediction, and no confidence
    predict(str(confident), texts, min_confidence=0.6)
    output = capfd.readouterr()
    assert output.out == "A\n\n\n\n"
    assert "2 inputs" in output.err
    predict(str(confident), texts, min_confidence=0.6, as_json=True, align=True)
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["translation"] for line in lines] == ["A", "", "", ""]
    assert [line["abstained"] for line in lines] == [False, True, False, True]
    assert lines[0]["confidence"] == pytest.approx(np.exp(-0.5))
    assert [lines[1]["score"], lines[3]["confidence"]] == [-1.5, None]
    predict(str(confident), texts, min_confidence=0.0)
    assert capfd.readouterr().out == "A\nCBA\n\n\n"
    predict(str(confident), texts[:2], as_json=True)
    assert "abstained" not in capfd.readouterr().out


def test_models_without_a_confidence(model, confident, printed):
    with pytest.raises(UserError) as raised:
        printed(model, "a", min_confidence=0.5)
    assert raised.value.where == "--min-confidence"
    with pytest.raises(UserError, match="constraints"):
        printed(confident, "a", min_confidence=0.5, prefix="A")


def test_two_texts_and_a_number(others, printed):
    path = others / "Matcher"
    assert printed(path, "abcd", "abxy", "a", "a") == "0.5\n1\n"
    output = json.loads(printed(path, "abc", "abx", align=True, as_json=True))
    assert output == {"first": "abc", "second": "abx", "similarity": pytest.approx(2 / 3)}


def test_a_model_without_a_search_lists_its_best_answers(others, printed):
    path, texts = others / "Finder", ("Anna ran home", "Who?", "Bob", "Who?")
    assert printed(path, *texts, n_best=2, with_score=True).splitlines() == [
        "-1.000000\tAnna ran home\tWho?\tAnna",
        "-2.000000\tAnna ran home\tWho?\tran",
        "-1.000000\tBob\tWho?\tBob",
    ]
    assert len(printed(path, *texts[:2], n_best=3).splitlines()) == 3
    # To a blank question there is no answer.
    blank = json.loads(printed(path, "Anna ran", "", n_best=3, as_json=True))
    assert blank["hypotheses"] == [{"answer": "", "score": None, "begin": 0, "end": 0}]
    one = json.loads(printed(path, *texts[:2], n_best=2, as_json=True))["hypotheses"][1]
    assert (one["answer"], one["begin"], one["end"]) == ("ran", 5, 8)


@pytest.mark.parametrize("count", [0, 4])
def test_a_list_has_no_more_answers_than_the_model_exports(others, count):
    with pytest.raises(UserError, match="lists its 3 best outputs, not") as caught:
        predict(str(others / "Finder"), ["Anna ran", "Who?"], n_best=count)
    assert caught.value.remedy == "Use a number from 1 to 3."


def test_two_texts_on_a_line_of_standard_input(others):
    status, out, err = _from_standard_input(others / "Matcher", "ab\tax\n\nalone\n")
    assert (status, out) == (2, "0.5\n\n")
    assert "standard input:3: 1 value, but the model has 2 inputs: first, second" in err


def test_points_and_positions(others, printed):
    points = "[[0.5, 0], [0.25, 1]]"
    assert printed(others / "Sorter", points) == "1 0\n"
    assert json.loads(printed(others / "Sorter", points, align=True, as_json=True)) == {
        "points": [[0.5, 0.0], [0.25, 1.0]],
        "order": [1, 0],
        "score": -0.5,
        "pointing": {"weights": [[0.0, 1.0], [1.0, 0.0]]},
    }


def test_an_image_and_its_caption(others, printed):
    image = str(others / "a.png")
    assert printed(others / "Namer", image) == "3 by 4\n"
    assert json.loads(printed(others / "Namer", image, align=True, as_json=True)) == {
        "image": image,
        "caption": "3 by 4",
        "score": -7.0,
        "alignment": {"target": ["3", "4"], "weights": [[[0.25] * 2] * 2] * 2},
    }


@pytest.mark.parametrize(
    ("name", "picture", "where", "message"),
    [
        ("Namer", None, "--align", "attends to an image, which a table of tokens cannot show"),
        ("Sorter", None, "--align", "attends to points, which a table of tokens cannot show"),
        ("Sorter", "a.html", "--align", "attends to points"),  # a picture does not allow a table
        ("Matcher", None, "--align", "has no attention to show"),
        ("Matcher", "a.html", "--picture", "has no attention to show"),
    ],
)
def test_attention_that_cannot_be_shown(others, tmp_path, name, picture, where, message):
    picture = picture and tmp_path / picture
    with pytest.raises(UserError, match=message) as caught:
        predict(str(others / name), ["a"], align=where == "--align", picture=picture)
    assert caught.value.where == where
    assert list(tmp_path.iterdir()) == []


def test_a_broken_model_is_a_user_error(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"nothing")
    with pytest.raises(UserError, match="cannot be loaded"):
        open_model(str(tmp_path), tmp_path)


def test_a_model_without_a_contract_is_a_user_error(tmp_path, save_model):
    path = save_model(tmp_path / "old", fake_models.Reverser)
    (path / CONTRACT).unlink()
    with pytest.raises(UserError, match="exported by an older Regard") as caught:
        open_model(str(path), path)
    assert caught.value.where == str(path)


def _break() -> None:
    os.write(2, b"reason\n")
    raise ValueError("bad")


def test_silence_in_two_threads_ends(capfd):
    has_ended = threading.Event()

    def be_silent():
        with silence_output():
            has_ended.wait(60)

    thread = threading.Thread(target=be_silent)
    with silence_output():
        thread.start()
        time.sleep(0.2)
    has_ended.set()
    thread.join(60)
    os.write(1, b"shown\n")
    assert capfd.readouterr().out == "shown\n"


def test_output_is_silenced_and_shown_after_an_error(capfd):
    with silence_output() as out:
        os.write(2, b"noise\n")
        os.write(1, b"more\n")
        out.write("answer\n")
    messages = capfd.readouterr()
    assert (messages.out, messages.err) == ("answer\n", "")
    with pytest.raises(ValueError, match="bad"), silence_output():
        _break()
    assert "reason" in capfd.readouterr().err


def test_predictions_before_a_rejected_row_are_yielded(tmp_path, save_model):
    path = save_model(tmp_path / "strict", fake_models.Reverser, "refuse")
    answers = _predict(path, "ab", "x" * 101, "cd")
    assert next(answers)[1].hypothesis == "BA"
    with pytest.raises(UserError, match="more than the 100 tokens of max_source_length") as caught:
        next(answers)
    assert caught.value.where == "x" * 59 + "…"
    assert "Shorten it" in caught.value.remedy


def test_too_few_points(tmp_path):
    path = fake_models.save(fake_tasks.Sorter(min_points=3), tmp_path / "sorter")
    answers = _predict(path, "[[0, 1], [1, 0], [2, 0]]", "[[0.5, 1]]")
    assert next(answers)[1].hypothesis == [0, 1, 2]
    with pytest.raises(UserError, match="fewer than the 3 points") as caught:
        next(answers)
    assert caught.value.where == "[[0.5, 1.0]]"
    assert caught.value.remedy.startswith("Give more points")


def test_a_picture_has_the_attention_of_all_rows(others, tmp_path):
    picture = tmp_path / "attention.html"
    rows = {"Sorter": ["[[0.5, 0], [0.25, 1]]", "[[1, 2]]"], "Namer": [str(others / "a.png")]}
    for name, texts in rows.items():
        predict(str(others / name), texts, picture=picture)
        page = picture.read_text(encoding="utf-8")
        data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
        assert len(data["predictions"]) == len(texts)
        assert data["contract"]["looks"]["weights"] in data["predictions"][0]["outputs"]
        assert "export " not in page.partition('<script type="module">')[2]
        assert f"<title>{name} – Regard</title>" in page
    assert data["predictions"][0]["inputs"]["image"].startswith("data:image/png;base64,")


def test_a_picture_has_all_heads_of_a_transformer(tmp_path):
    fake_models.save(fake_models.ManyHeaded(4), tmp_path / "m")
    picture = tmp_path / "attention.html"
    predict(str(tmp_path / "m"), ["abc", "abcdefgh"], picture=picture)
    page = picture.read_text(encoding="utf-8")
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data["contract"]["heads"]["looks"][0]["weights"] == "cross_heads"
    short, long = data["predictions"]
    assert np.shape(short["heads"]["cross_heads"]) == (2, 3, 4, 4)  # layers, heads, tokens
    np.testing.assert_allclose(np.sum(short["heads"]["cross_heads"], axis=-1), 1.0, atol=2e-3)
    assert short["heads"]["target_pieces"] == short["outputs"]["target_pieces"]
    assert long["heads"] is None  # more than the model returns
    script = page.partition('<script type="module">')[2].partition("</script>")[0]
    (tmp_path / "page.mjs").write_text(script, encoding="utf-8")
    if shutil.which("node"):
        subprocess.run(["node", "--check", tmp_path / "page.mjs"], check=True)


def test_text_in_a_picture_is_escaped(model, tmp_path):
    picture = tmp_path / "attention.html"
    predict(str(model), ["</script> <b>"], picture=picture)
    page = picture.read_text(encoding="utf-8")
    assert "</script> <b>" not in page
    assert page.count("</script>") == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.jpg", "Unsupported picture format `.jpg`. Use `.html`."),
        ("a", "Unsupported picture format without a suffix. Use `.html`."),
        ("none/a.html", "The folder does not exist."),
    ],
)
def test_invalid_picture_paths(model, tmp_path, name, message):
    with pytest.raises(UserError) as caught:
        predict(str(model), ["a"], picture=tmp_path / name)
    assert caught.value.message == message


@pytest.mark.parametrize(("is_terminal", "expected"), [(True, "B\\x1bA\n"), (False, "B\x1bA\n")])
def test_control_characters_do_not_reach_a_terminal(model, monkeypatch, is_terminal, expected):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(prediction, "silence_output", lambda: contextlib.nullcontext(stream))
    prediction.predict(str(model), Path(), ["a\x1bb"], prediction.PredictOptions())
    assert stream.getvalue() == expected


@pytest.fixture(scope="module")
def constrained(tmp_path_factory, save_model):
    return save_model(tmp_path_factory.mktemp("constrained") / "m", fake_models.Constrained)


def test_constraints(constrained, printed, tmp_path):
    options = {"prefix": "p", "phrases": ["y"]}
    assert printed(constrained, "abc", "", "de", **options) == "p|CBA|y\n\np|ED|y\n"
    terms = tmp_path / "terms.tsv"
    terms.write_text("one\tEINS\n", encoding="utf-8")
    lines = printed(constrained, "one", "two", glossary=terms).splitlines()
    assert lines == ["|ENO|EINS", "|OWT|"]


def test_constraints_that_cannot_hold_are_refused(model, constrained):
    with pytest.raises(UserError, match="does not support constraints"):
        predict(str(model), ["abc"], prefix="p")
    with pytest.raises(UserError, match="cannot be combined"):
        predict(str(constrained), ["abc"], prefix="p", align=True)


def test_truncation_is_announced(model, capfd):
    predict(str(model), ["a" * 300, "b"], align=True)
    assert "note: 1 input truncated to search.max_source_length" in capfd.readouterr().err


def test_tags(model, tmp_path, printed):
    path = tmp_path / "tagged"
    shutil.copytree(model, path)
    contract = json.loads((path / CONTRACT).read_text())
    (path / CONTRACT).write_text(json.dumps({**contract, "tags": ["de", "fr"]}))
    assert printed(path, "ab", "", tag="de") == "BA >ED<\n\n"
    assert printed(path, "<fr> ab") == "BA >RF<\n"
    row = json.loads(printed(path, "ab", tag="fr", as_json=True))
    assert (row["source"], row["translation"]) == ("ab", "BA >RF<")
    score(str(path), ["ab", "ba"], tag="fr")
    with pytest.raises(UserError, match="its tags are de, fr"):
        printed(path, "ab")
