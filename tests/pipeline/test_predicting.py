from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from components.errors import UserError
from pipeline import predicting
from pipeline.commands.predict import predict
from pipeline.typed_rows import Reader
from serving.saved_model import CONTRACT
from tests import fake_models, fake_tasks

ROOT = Path(__file__).resolve().parents[2]


def _texts(content: bytes, size: int = 64) -> list[list[str]]:
    return list(predicting.stream_batches(io.BytesIO(content), size))


def test_lines_are_given_in_full_batches_and_in_order():
    lines = [f"line {number}" for number in range(150)]
    found = _texts("".join(f"{line}\n" for line in lines).encode())
    assert [line for batch in found for line in batch] == lines
    assert max(map(len, found)) == 64


def test_only_the_line_feed_ends_a_line():
    content = "\ufeffone\r\n\ntwo\u2028still two\nlast".encode()
    assert _texts(content) == [["one", "", "two\u2028still two", "last"]]


def test_no_lines():
    assert _texts(b"") == []


def test_line_that_is_not_utf8_is_named_after_the_answers_before_it():
    batches = predicting.stream_batches(io.BytesIO(b"good\nb\xe4d\n"))
    assert next(batches) == ["good"]
    with pytest.raises(UserError) as raised:
        next(batches)
    assert raised.value.where == "standard input:2"


def test_slow_lines_are_not_held_back():
    reading, writing = os.pipe()
    with open(reading, "rb") as file:
        batches = predicting.stream_batches(file)
        os.write(writing, b"first\n")
        timer = threading.Timer(10, os.close, [writing])
        timer.start()
        assert next(batches) == ["first"]  # the pipe is still open
        assert timer.is_alive()
        timer.cancel()
        os.write(writing, b"second\n")
        os.close(writing)
        assert list(batches) == [["second"]]


def test_batches():
    assert list(predicting.batches("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(predicting.batches([])) == []


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A SavedModel with the contract of ours, which answers in capitals."""
    import tensorflow as tf

    class Shout(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
        def serving_default(self, source):
            upper = tf.strings.upper(source)
            return {"translation": upper, "score": tf.zeros(tf.shape(source))}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
        def align(self, source):
            pieces = tf.strings.split(source, " ")
            lengths = tf.cast(pieces.row_lengths(), tf.int32)
            padded = pieces.to_tensor()
            width = tf.shape(padded)[1]
            return {
                **self.serving_default(source),
                "source_pieces": padded,
                "source_length": lengths,
                "target_pieces": tf.strings.upper(padded),
                "target_length": lengths,
                "alignment": tf.eye(width, batch_shape=tf.shape(source)),
            }

        def signatures(self):
            return {"serving_default": self.serving_default, "align": self.align}

        def contract(self):
            contract = fake_models.Reverser().contract()
            del contract["signatures"]["align"]["outputs"]["source_cut"]
            return contract

    return fake_models.save(Shout(), tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """A model of two texts, one of points and one of images."""
    folder = tmp_path_factory.mktemp("others")
    for name in ("Matcher", "Sorter", "Namer"):
        fake_models.save(getattr(fake_tasks, name)(), folder / name)
    (folder / "a.png").write_bytes(fake_tasks.png(3, 4))
    return folder


def _answers(path, *texts, align=False):
    loaded = predicting.Model(path)
    rows = list(Reader(loaded.contract).arguments(texts))
    return loaded, list(loaded.answers([rows], align=align))


def _regard(*arguments: str, given: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        cwd=ROOT,
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_model_answers_and_aligns(model):
    _, answers = _answers(model, "a b", " ", "c")
    assert [row.inputs["source"] for row, _ in answers] == ["a b", " ", "c"]
    assert [predicting.one_line(answer) for _, answer in answers] == ["A B", "", "C"]
    assert [answer and answer.score for _, answer in answers] == [0.0, None, 0.0]
    loaded, ((row, answer),) = _answers(model, "a b", align=True)
    assert predicting.as_dict(row, answer, loaded.contract)["alignment"] == {
        "source": ["a", "b"],
        "target": ["A", "B"],
        "weights": [[1.0, 0.0], [0.0, 1.0]],
    }
    _, (_, (_, short)) = _answers(model, "a b c", "d", align=True)
    assert short.outputs["alignment"].tolist() == [[1.0]]  # without padding


def test_predict_from_standard_input_prints_nothing_but_answers(model):
    done = _regard("predict", str(model), given="good morning\n\nüber\n")
    assert done.stdout == "GOOD MORNING\n\nÜBER\n".replace("Ü", "ü")
    assert done.stderr == ""
    assert done.returncode == 0


def test_predict_with_alignment(model, capfd):
    predict(str(model), ["a b"], align=True, as_json=False, registry=None)
    assert capfd.readouterr().out == "A B\n   a  b\nA  ██\nB     ██\n\n"


def test_predict_json(model, capfd):
    predict(str(model), ["a"], align=True, as_json=True, registry=None)
    assert json.loads(capfd.readouterr().out) == {
        "source": "a",
        "translation": "A",
        "score": 0.0,
        "alignment": {"source": ["a"], "target": ["A"], "weights": [[1.0]]},
    }


def test_json_of_nothing_has_no_answer(model, capfd):
    predict(str(model), [""], align=True, as_json=True, registry=None)
    assert json.loads(capfd.readouterr().out) == {"source": "", "translation": "", "score": None}


def test_what_else_is_answered_is_in_the_json(tmp_path, capfd):
    path = fake_models.save(fake_models.Reverser(), tmp_path / "m")
    predict(str(path), ["a" * 101], align=True, as_json=True, registry=None)
    told = json.loads(capfd.readouterr().out)
    assert told["source_cut"] == 1
    assert list(told) == ["source", "translation", "score", "alignment", "source_cut"]


def test_two_texts_and_a_number(others, capfd):
    path = str(others / "Matcher")
    predict(path, ["abcd", "abxy", "a", "a"], align=False, as_json=False, registry=None)
    assert capfd.readouterr().out == "0.5\n1\n"
    predict(path, ["abc", "abx"], align=True, as_json=True, registry=None)
    told = json.loads(capfd.readouterr().out)
    assert told == {"first": "abc", "second": "abx", "similarity": pytest.approx(2 / 3)}


def test_two_texts_on_a_line_of_standard_input(others):
    done = _regard("predict", str(others / "Matcher"), given="ab\tab\n\nab\tax\n")
    assert (done.stdout, done.stderr, done.returncode) == ("1\n\n0.5\n", "", 0)
    done = _regard("predict", str(others / "Matcher"), given="ab\tab\nalone\n")
    assert (done.stdout, done.returncode) == ("1\n", 2)
    assert "standard input:2: 1 value, but the model has 2 inputs: first, second" in done.stderr


def test_points_and_positions(others, capfd):
    path = str(others / "Sorter")
    points = "[[0.5, 0], [0.25, 1]]"
    predict(path, [points], align=False, as_json=False, registry=None)
    assert capfd.readouterr().out == "1 0\n"
    predict(path, [points], align=True, as_json=True, registry=None)
    assert json.loads(capfd.readouterr().out) == {
        "points": [[0.5, 0.0], [0.25, 1.0]],
        "order": [1, 0],
        "score": -0.5,
        "pointing": {"weights": [[0.0, 1.0], [1.0, 0.0]]},
    }


def test_an_image_and_its_caption(others, capfd):
    path, image = str(others / "Namer"), str(others / "a.png")
    predict(path, [image], align=False, as_json=False, registry=None)
    assert capfd.readouterr().out == "3 by 4\n"
    predict(path, [image], align=True, as_json=True, registry=None)
    assert json.loads(capfd.readouterr().out) == {
        "image": image,
        "caption": "3 by 4",
        "score": -7.0,
        "alignment": {"target": ["3", "4"], "weights": [[[0.25] * 2] * 2] * 2},
    }


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("Namer", "a.png", "looks at an image, which a table of pieces cannot show"),
        ("Sorter", "[[0, 1]]", "looks at points, which a table of pieces cannot show"),
        ("Matcher", "a", "does not tell where it looked"),
    ],
)
def test_what_no_table_can_show_is_refused(others, name, text, message):
    with pytest.raises(UserError, match=message) as caught:
        predict(str(others / name), [text], align=True, as_json=False, registry=None)
    assert caught.value.where == "--align"
    assert ("--picture" in caught.value.remedy) == (name != "Matcher")


@pytest.mark.parametrize(
    ("name", "text", "align", "where"),
    [
        ("Namer", "a.png", True, "--align"),  # what can be drawn is no table for that
        ("Sorter", "[[0, 1]]", True, "--align"),
        ("Matcher", "a", False, "--picture"),
    ],
)
def test_a_picture_is_no_leave_for_a_table(others, tmp_path, name, text, align, where):
    picture = tmp_path / "looks.png"
    with pytest.raises(UserError) as caught:
        predict(str(others / name), [text], align, as_json=False, picture=picture, registry=None)
    assert caught.value.where == where
    assert not picture.exists()


def test_broken_model_is_a_user_error(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"nothing")
    with pytest.raises(UserError, match="cannot be loaded"):
        predicting.Model(tmp_path)


def test_model_without_a_contract_is_a_user_error(tmp_path):
    path = fake_models.save(fake_models.Reverser(), tmp_path / "old")
    (path / CONTRACT).unlink()
    with pytest.raises(UserError, match="it was exported by an older Regard") as caught:
        predicting.Model(path)
    assert caught.value.where == str(path)


def _break() -> None:
    os.write(2, b"reason\n")
    raise ValueError("bad")


def test_quiet_keeps_chatter_off_and_shows_it_when_something_breaks(capfd):
    with predicting.quiet() as out:
        os.write(2, b"chatter\n")
        os.write(1, b"more\n")
        out.write("answer\n")
    told = capfd.readouterr()
    assert (told.out, told.err) == ("answer\n", "")
    with pytest.raises(ValueError, match="bad"), predicting.quiet():
        _break()
    assert "reason" in capfd.readouterr().err


def test_a_refused_source_is_named_after_the_answers_before_it(tmp_path):
    path = fake_models.save(fake_models.Reverser("refuse"), tmp_path / "strict")
    loaded = predicting.Model(path)
    answers = loaded.answers([list(Reader(loaded.contract).arguments(["ab", "x" * 101, "cd"]))])
    assert next(answers)[1].hypothesis == "BA"
    with pytest.raises(UserError, match="more than the 100 pieces of max_source_length") as caught:
        next(answers)
    assert caught.value.where == "x" * 59 + "…"
    assert "Shorten it" in caught.value.remedy


def test_too_few_points_are_told_with_what_to_do(tmp_path):
    loaded = predicting.Model(fake_models.save(fake_tasks.Sorter(least=3), tmp_path / "sorter"))
    rows = list(Reader(loaded.contract).arguments(["[[0, 1], [1, 0], [2, 0]]", "[[0.5, 1]]"]))
    answers = loaded.answers([rows])
    assert next(answers)[1].hypothesis == [0, 1, 2]
    with pytest.raises(UserError, match="fewer than the 3 points") as caught:
        next(answers)
    assert caught.value.where == "[[0.5, 1.0]]"
    assert caught.value.remedy.startswith("Give more points")
