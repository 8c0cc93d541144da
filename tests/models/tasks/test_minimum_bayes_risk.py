"""The utility against sacreBLEU, and the search in a model as it is exported."""

import random

import numpy as np
import pytest
import sacrebleu
import tensorflow as tf
from pydantic import TypeAdapter

from regard.models import tasks
from regard.models.settings.search import SearchConfig
from regard.models.tasks import minimum_bayes_risk
from regard.models.tasks.minimum_bayes_risk import pairwise_utility
from regard.models.tasks.served_text import ServedText
from tests.marks import slow_except
from tests.models.tasks.exported import created, servable
from tests.models.tasks.tokenizers import write_tokenizers

# One text and its variants on a line; the tokenizer 13a treats each of these signs in its own way.
TEXTS = [
    ["The cat sat on the mat.", "The cat sat on a mat.", "A dog.", "The cat sat on the mat", ""],
    ["It costs $3.50, i.e. 1-2% more.", "It costs 3,50 $ i.e. 1 - 2 % more .", "3.5", ".", "a.b"],
    ["&quot;Q&amp;A&quot; <skipped>", '"Q&A"', "pre-\nfix", "prefix -", "line\nline\n", "-\n"],
    [
        "Ein Hund läuft.",
        "Ein Hund läuft. Ein Hund läuft.",
        "日本語 の 文。",
        "日本語の文。",
        "e\u0301é",
    ],
]
SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"
SIGNS = [
    "&lt;",
    "&amp;",
    "<skipped>",
    "-\n",
    *SPACES,
    *"ab .,-&0123{}~[]^`()+:;<=>?@/\\\"'\0\ufeff",
]
SENTENCES = ["a cat sat", "the dog ran far away", "", "a"]


def random_texts(seed):
    """Variants of a text of any characters."""
    random_ = random.Random(seed)

    def sign():
        code = random_.choice([random_.randrange(0x250), random_.randrange(0x110000)])
        is_text = random_.random() < 0.3 and not 0xD800 <= code < 0xE000
        return chr(code) if is_text else random_.choice(SIGNS)

    text = [sign() for _ in range(random_.randrange(60))]
    variants = [[one if random_.random() < 0.8 else sign() for one in text] for _ in range(5)]
    return ["".join(one[: random_.choice([2, 5, 60])]) for one in variants]


def reference(texts, utility):
    score = sacrebleu.sentence_chrf if utility == "chrf" else sacrebleu.sentence_bleu
    return np.array([[score(one, [other]).score for other in texts] for one in texts])


@pytest.fixture(scope="module", params=["chrf", "bleu"])
def utility(request):
    """The name of a utility, and its graph."""
    spec = [tf.TensorSpec([None], tf.string)]
    return request.param, tf.function(
        lambda texts: pairwise_utility(texts, request.param), input_signature=spec, autograph=False
    )


@pytest.mark.parametrize("texts", [*TEXTS, *map(random_texts, range(20)), ["a"], ["", " "]])
def test_the_utility_is_that_of_sacrebleu(utility, texts):
    name, function = utility
    result = function(tf.constant([text.encode() for text in texts])).numpy()
    np.testing.assert_allclose(result, reference(texts, name), rtol=1e-12, atol=1e-12)


def test_long_texts_are_counted_in_parts(utility, monkeypatch):
    monkeypatch.setattr(minimum_bayes_risk, "_COLUMNS", 7)
    texts = ["the cat " * 9, "a cat and the dog " * 5, "the the the"]
    result = pairwise_utility(tf.constant(texts), utility[0]).numpy()
    np.testing.assert_allclose(result, reference(texts, utility[0]), rtol=1e-12)


def test_bytes_that_are_not_utf8_are_replaced(utility):
    name, function = utility
    raw = [b"a\xff b \x80", b"a b"]
    expected = reference([text.decode(errors="replace") for text in raw], name)
    np.testing.assert_allclose(function(tf.constant(raw)).numpy(), expected, rtol=1e-12)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mbr")
    write_tokenizers(folder)
    module = created(folder, seed=11, certain=3.0, save=False).module
    return module._model, module.tokenizers


def make(model, **settings):
    search = TypeAdapter(SearchConfig).validate_python({**settings, "max_length_offset": 3})
    return ServedText(tasks.describe("translation"), *model, None, search).served_model()


@pytest.mark.parametrize("name", slow_except(["chrf"], ["chrf", "bleu"]))
def test_hypotheses_have_the_mean_utility_of_the_samples(model, name):
    samples = make(model, type="sampling", samples=6, seed=2).module.n_best(SENTENCES)
    served = make(model, type="mbr", samples=6, seed=2, utility=name, n_best=6)
    result = {key: value.numpy() for key, value in served.module.n_best(SENTENCES).items()}
    for row, texts in enumerate(samples["hypotheses"].numpy()):
        texts = [text.decode() for text in texts]
        means = dict(zip(texts, reference(texts, name).mean(axis=1), strict=True))
        count = len(means) if SENTENCES[row] else 6  # a blank source has no texts
        scores = result["scores"][row, :count]
        assert (np.diff(scores) <= 0).all()
        if SENTENCES[row]:
            texts_of_row = [text.decode() for text in result["hypotheses"][row]]
            assert set(texts_of_row[:count]) == set(texts)
            assert texts_of_row[count:] == [""] * (6 - count)
            assert (result["scores"][row, count:] < -1e8).all()
            np.testing.assert_allclose(
                scores, [means[one] for one in texts_of_row[:count]], rtol=1e-5
            )
            log_probs = dict(zip(texts, samples["log_probabilities"][row].numpy(), strict=True))
            best = log_probs[texts_of_row[0]]
            assert result["log_probabilities"][row, 0] == pytest.approx(best, abs=1e-4)
    assert len(set(result["hypotheses"][1])) > 2
    best = served.module.predict(SENTENCES)["translation"].numpy()
    assert best.tolist() == result["hypotheses"][:, 0].tolist()


def test_a_row_does_not_depend_on_its_batch(model, tmp_path):
    served = make(model, type="mbr", samples=5, n_best=2, top_p=0.9)
    alone = tf.Module()
    alone.weights, alone.tokenizers = served.module.weights, served.module.tokenizers
    tf.saved_model.save(alone, str(tmp_path), signatures={"nbest": served.signatures["nbest"]})
    assert servable(tmp_path)
    function = tf.saved_model.load(str(tmp_path)).signatures["nbest"]
    all_rows = function(source=tf.constant([*SENTENCES, "the dog " * 9]))
    for row, sentence in enumerate(SENTENCES):
        one = function(source=tf.constant([sentence]))
        for name in ("hypotheses", "scores"):
            assert one[name][0].numpy().tolist() == all_rows[name][row].numpy().tolist()
    assert function(source=tf.constant([], tf.string))["scores"].shape == (0, 2)


def test_one_sample_is_that_of_sampling(model):
    results = [
        make(model, type=name, samples=1).module.predict(SENTENCES) for name in ("mbr", "sampling")
    ]
    assert results[0]["translation"].numpy().tolist() == results[1]["translation"].numpy().tolist()
