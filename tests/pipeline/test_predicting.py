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
from tests import fake_models

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
    """A SavedModel with the signatures of ours, which answers in capitals."""
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

    path = tmp_path_factory.mktemp("model")
    module = Shout()
    signatures = {"serving_default": module.serving_default, "align": module.align}
    tf.saved_model.save(module, str(path), signatures=signatures)
    return path


def _regard(*arguments: str, given: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "pipeline.cli", *arguments],
        cwd=ROOT,
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_translator_answers_and_aligns(model):
    translator = predicting.Translator(model)
    answers = list(translator.answers([["a b", " ", "c"]]))
    assert [source for source, _ in answers] == ["a b", " ", "c"]
    assert [predicting.one_line(answer) for _, answer in answers] == ["A B", "", "C"]
    assert [answer and answer.score for _, answer in answers] == [0.0, None, 0.0]
    ((source, answer),) = translator.answers([["a b"]], align=True)
    assert predicting.as_dict(source, answer)["alignment"] == {
        "source": ["a", "b"],
        "target": ["A", "B"],
        "weights": [[1.0, 0.0], [0.0, 1.0]],
    }
    _, (_, short) = translator.answers([["a b c", "d"]], align=True)
    assert short.alignment.tolist() == [[1.0]]  # without padding


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


def test_broken_model_is_a_user_error(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"nothing")
    with pytest.raises(UserError, match="cannot be loaded"):
        predicting.Translator(tmp_path)


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
    answers = predicting.Translator(path).answers([["ab", "x" * 101, "cd"]])
    assert next(answers)[1].hypothesis == "BA"
    with pytest.raises(UserError, match="more than the 100 pieces of max_source_length") as caught:
        next(answers)
    assert caught.value.where == "x" * 59 + "…"
