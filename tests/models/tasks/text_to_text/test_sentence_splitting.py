"""Long sources are predicted sentence by sentence inside the exported graph."""

import numpy as np
import pytest
import tensorflow as tf
from pydantic import TypeAdapter

from regard.components.serving_check.executor import exported_rows
from regard.components.trainer.export import InMemoryModel, RebuiltModel
from regard.models.settings.search import SearchConfig
from regard.models.tasks.text_to_text.sentence_splitting import MAX_SENTENCES, predict_by_sentence
from regard.serving.checks import check
from regard.serving.saved_model import load, predict_in_detail
from tests.models.tasks.exported import SEARCH, created, export_model
from tests.models.tasks.task_parts import module_of
from tests.models.tasks.tokenizers import write_tokenizers
from tests.tolerances import close_to

ENCODER, DECODER = {"type": "embedding"}, {"type": "luong", "units": 8}
SHORT = ["a cat sat. the dog ran", "", "  ", "a"]
LONG = "the dog ran far away! a cat sat on the mat. the cat ran home? a dog"
SENTENCES = ["the dog ran far away!", "a cat sat on the mat.", "the cat ran home?", "a dog"]


def split(texts, is_long=True, limit=20):
    """The sentences of texts, each in brackets, and the other outputs."""

    def mark(sentences):
        marked = tf.strings.join(["[", sentences, "]"])
        return {"text": marked, "cut": tf.ones_like(sentences, tf.int32)}

    texts = tf.constant(texts, tf.string, shape=[len(texts)])
    is_long = tf.broadcast_to(tf.constant(is_long, tf.bool), tf.shape(texts))
    outputs = predict_by_sentence(mark, texts, is_long, limit, "cut")
    return {name: value.numpy().tolist() for name, value in outputs.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Go. Now?  Yes! Well…\nFine", "[Go.] [Now?] [Yes!] [Well…] [Fine]"),
        ('He said "No." Then (it rained.) Oh...', '[He said "No."] [Then (it rained.)] [Oh...]'),
        (
            "A. Smith, e.g. in 3.5 on 20. Mai 2026. Ja",
            "[A. Smith, e.g. in 3.5 on 20. Mai 2026.] [Ja]",
        ),
        ("你好。你叫什么名字？「好。」我 ", "[你好。][你叫什么名字？][「好。」][我]"),
        ("はい！ いいえ。", "[はい！] [いいえ。]"),
        ("مرحبا؟ نعم. حسنا", "[مرحبا؟] [نعم.] [حسنا]"),
        ("राम गया। सीता आई।", "[राम गया।] [सीता आई।]"),
        ("Да. Нет.", "[Да.] [Нет.]"),
        ("no end", "[no end]"),
        (b"\xff ab. \x80cd. \x1e", b"[\xff ab.] [\x80cd.]"),
        ("Go. \u200b Now?\u3000 \ufeff\u2060", "[Go.] [\u200b Now?\u3000 \ufeff\u2060]"),
        ("好。\u3000\u200b。\xa0走", "[好。] [\u200b。] [走]"),
    ],
)
def test_sentences_of_many_scripts_are_joined_as_in_the_source(text, expected):
    outputs = split([text])
    expected = expected if isinstance(expected, bytes) else expected.encode()
    assert outputs["text"] == [expected]
    assert outputs["sentences"] == outputs["cut"] == [expected.count(b"[")]


def test_texts_that_fit_are_not_changed():
    texts = [b" Go. Now. ", b"", b"  \x1e a", b"Go. Now."]
    outputs = split(texts, [False, False, False, True])
    assert outputs["text"] == [b"[ Go. Now. ]", b"[]", b"[  \x1e a]", b"[Go.] [Now.]"]
    assert outputs["sentences"] == [1, 1, 1, 2]
    assert split([])["text"] == split([])["sentences"] == []


@pytest.mark.parametrize("text", ["ab. " * 4_000_000, "。" * 5_000_000, "ab.\x1e " * 1_000_000])
def test_a_source_has_a_limited_number_of_sentences(text):
    outputs = split([text, "ab. " * 70])
    assert max(outputs["sentences"]) <= MAX_SENTENCES
    assert outputs["cut"][0] > outputs["sentences"][0]  # also that of the characters
    rest = b" ".join([b"ab."] * (70 - MAX_SENTENCES + 1))
    assert outputs["text"][1].endswith(b"[ab.] [" + rest + b"]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("split")
    write_tokenizers(folder)
    return folder


@pytest.fixture(scope="module")
def plain(folder):
    return created(folder, seed=11, certain=3.0, save=False, encoder=ENCODER, decoder=DECODER)


def make(plain, task="translation", **settings):
    search = TypeAdapter(SearchConfig).validate_python({**SEARCH, **settings})
    module = plain.module
    options = {"search": search, "split_sentences": True}
    return module_of(task, module._model, module.tokenizers, **options).served_model()


@pytest.fixture(scope="module")
def served(plain):
    return make(plain)


def outputs_of(served, texts, name="serving_default"):
    outputs = served.signatures[name](tf.constant(texts))
    return {key: value.numpy() for key, value in outputs.items()}


def test_sources_that_fit_have_identical_outputs(plain, served):
    before, after = outputs_of(plain, SHORT), outputs_of(served, SHORT)
    assert after.pop("sentences").tolist() == [1] * 4
    assert set(before) == set(after)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)


def test_a_long_source_has_the_joined_outputs_of_its_sentences(served):
    single = outputs_of(served, SENTENCES)
    assert single["sentences"].tolist() == [1] * 4
    long = outputs_of(served, [LONG])
    assert long["translation"].tolist() == [b" ".join(single["translation"])]
    assert long["score"][0] == close_to(single["score"].sum(), roundings=1000)
    assert long["source_cut"].tolist() == [0]
    assert long["sentences"].tolist() == [4]
    assert outputs_of(served, [LONG], "align")["source_cut"][0] > 0


def test_a_sentence_that_is_too_long_is_truncated(served):
    sentence = "the dog ran far away from home " * 4
    expected = outputs_of(served, [sentence])["source_cut"][0]
    assert expected > 0
    assert outputs_of(served, [f"{sentence}! {sentence}"])["source_cut"][0] >= 2 * expected


def test_rows_do_not_depend_on_the_batch(served):
    texts = [*SHORT, LONG, "a cat", LONG[::-1], "x" * 5000]
    batch = outputs_of(served, texts)
    for row, text in enumerate(texts):
        alone = outputs_of(served, [text])
        for name in ("translation", "sentences", "source_cut"):
            assert alone[name][0] == batch[name][row], (name, text)
        assert alone["score"][0] == close_to(batch["score"][row], roundings=1000, nan_ok=True)
    assert outputs_of(served, np.array([], object))["translation"].shape == (0,)


def test_evaluation_has_the_outputs_of_the_default_signature(served):
    model, rows = InMemoryModel(served), [{"source": text} for text in (SHORT[0], LONG)]
    default = model.predict("serving_default", rows)
    details = predict_in_detail(model, rows)
    for expected, detail in zip(default, details, strict=True):
        assert detail.hypothesis == expected.hypothesis
        assert detail.score == close_to(expected.score, roundings=1000)
        assert detail.truncated == expected.truncated == 0
        assert "alignment" in detail.outputs
        assert "sentences" not in detail.outputs


def test_the_serving_check_accepts_split_sources(folder):
    version = folder / "1"
    settings = {"seed": 11, "search": SEARCH, "serving": {"split_sentences": True}}
    export_model(folder, version, ENCODER, DECODER, [LONG, "a cat"], **settings)()
    model = load(version)
    rows = exported_rows(version, model.contract)
    assert rows[0]["answer"]["source_cut"] == 0
    assert model.predict("align", [rows[0]["inputs"]])[0].truncated > 0
    limits = {"absolute": 1e-3, "relative": 1e-4, "array": 1e-3, "ties": 0.0}
    request = {"model": str(version), "servers": ["2.14", "2.20"], "tolerances": limits}
    result = check({**request, "rows": rows})
    assert result["failures"] == result["refused"] == []
    assert result["unsupported_ops"] == {"2.14": {}, "2.20": {}}
    rows[0]["answer"]["translation"] += "x"
    (failure,) = check({**request, "rows": rows})["failures"]
    assert failure.startswith("serving_default, row 0 of the Trainer")
    # A model that is built again, for another search or an ensemble, splits sources too.
    assert RebuiltModel(version, "model").served().contract == model.contract
