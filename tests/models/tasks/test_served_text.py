"""The exported model: raw text in, raw text out, saved and loaded."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from pydantic import TypeAdapter

from regard.models import tasks
from regard.models.settings.search import SearchConfig
from regard.models.tasks.text_preprocessing import MAX_TOKEN_CHARACTERS
from regard.models.tasks.text_to_text.served import ServedText
from tests.marks import slow
from tests.models.tasks.exported import assert_equal_outputs, created, save_signatures, servable
from tests.models.tasks.task_parts import check_output_names
from tests.models.tasks.tokenizers import write_tokenizers
from tests.tolerances import assert_close, close_to

SENTENCES = ["a cat sat", "the dog ran far away", "", "a", "unseen ☃ words", "x " * 300]
SECTIONS = {
    "encoder": {"type": "recurrent", "units": 8},
    "decoder": {"type": "luong", "units": 8},
    "search": {
        "type": "beam",
        "beam_size": 3,
        "length_penalty": 0.6,
        "max_length_offset": 4,
        "max_source_length": 20,
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    write_tokenizers(folder)
    return folder


@pytest.fixture(scope="module")
def in_memory(folder):
    # With this seed some answers are cut as they were written.
    served = created(folder, seed=11, certain=3.0, **SECTIONS)
    return served.module._model, served, served.module.tokenizers


@pytest.fixture(scope="module")
def loaded(folder, in_memory):
    return tf.saved_model.load(str(folder / "saved"))


@pytest.fixture(scope="module")
def make(in_memory):
    """Serve the model with another search; a signature is traced once for all tests."""
    model, _, tokenizers = in_memory

    @functools.cache
    def create(task="translation", **settings):
        search = TypeAdapter(SearchConfig).validate_python(settings)
        return ServedText(tasks.describe(task), model, tokenizers, None, search).served_model()

    return create


@pytest.fixture(scope="module")
def summariser(make):
    return make("summarisation", type="beam", beam_size=2, n_best=2, max_source_length=3)


@pytest.fixture(scope="module")
def refusing(make):
    return make(type="greedy", max_source_length=20, long_source="refuse")


@pytest.fixture(scope="module")
def several(make):
    penalties = {"length_penalty": 1.0, "coverage_penalty": 0.2, "no_repeat_ngram_size": 2}
    return make(type="beam", beam_size=4, n_best=3, max_length_offset=0, **penalties)


@pytest.mark.parametrize(
    ("signature", "method"),
    [("serving_default", "predict"), ("align", "align"), ("score", "score")],
)
def test_exported_equals_in_memory(in_memory, loaded, signature, method):
    _, served, _ = in_memory
    arguments = {"source": tf.constant(SENTENCES)}
    if signature == "score":
        arguments["target"] = tf.constant(SENTENCES[::-1])
    expected = getattr(served.module, method)(*arguments.values())
    result = loaded.signatures[signature](**arguments)
    assert_equal_outputs(result, expected)


def test_two_tokenizers_stay_two(in_memory, loaded):
    """Resources without names of their own become one when a model is loaded."""
    _, _, tokenizers = in_memory
    result = loaded.signatures["align"](source=tf.constant(["the dog ran"]))
    token_ids = tokenizers["source"].id_to_string(tokenizers["source"].tokenize(["the dog ran"]))
    length = int(result["source_length"][0])
    assert (
        result["source_pieces"][0, : length - 1].numpy().tolist() == token_ids[0].numpy().tolist()
    )
    vocabulary = {
        tokenizers["target"].id_to_string(i).numpy()
        for i in range(int(tokenizers["target"].vocab_size()))
    }
    assert set(result["target_pieces"].numpy().ravel()) <= vocabulary


def test_alignments_are_distributions_over_the_real_source(loaded):
    result = loaded.signatures["align"](source=tf.constant(SENTENCES))
    alignment = result["alignment"].numpy()
    assert alignment.dtype == np.float32
    for row in range(len(SENTENCES)):
        target, source = int(result["target_length"][row]), int(result["source_length"][row])
        assert_close(alignment[row, :target, :source].sum(-1), 1.0, roundings=1000)
        assert (alignment[row, target:] == 0).all()
        assert (alignment[row, :, source:] == 0).all()


def test_long_sources_are_cut_at_the_limit_and_counted(in_memory, loaded):
    tokenizer = in_memory[2]["source"]
    result = loaded.signatures["align"](source=tf.constant(SENTENCES))
    token_ids = [len(tokenizer.tokenize(sentence)) for sentence in SENTENCES]
    assert result["source_cut"].numpy().tolist() == [max(n - 20, 0) for n in token_ids]
    assert max(token_ids) > 20
    assert int(result["source_length"][5]) == 20 + 1
    assert (result["target_length"].numpy() <= 2 * 20 + 4 + 1).all()


MOST = MAX_TOKEN_CHARACTERS * 20


def test_the_number_of_truncated_tokens_is_a_lower_bound(in_memory, loaded):
    tokenizer = in_memory[2]["source"]
    texts = ["a cat " * count for count in (60, 106, 107, 300, 50_000)]
    cut = loaded.signatures["align"](source=tf.constant(texts))["source_cut"].numpy().tolist()
    exact = [len(tokenizer.tokenize(text)) - 20 for text in texts]
    is_exact = [len(text) <= MOST for text in texts]
    assert is_exact == [True, True, False, False, False]
    assert cut[:2] == exact[:2]
    bound = len(tokenizer.tokenize(texts[-1][:MOST])) - 20
    assert cut[2:] == [bound] * 3
    assert all(0 < one <= other for one, other in zip(cut, exact, strict=True))


def test_spaces_alone_are_not_truncated(refusing, loaded):
    texts = ["a cat" + " " * 100_000, "a cat" + "\n" * MOST, "a cat" + " " * MOST + "a"]
    cut = loaded.signatures["align"](source=tf.constant(texts))["source_cut"].numpy().tolist()
    assert cut == [0, 0, 1]
    refusing.module.predict(tf.constant(texts[:2]))


@pytest.mark.parametrize(
    ("text", "shortened"),
    [
        ("a cat " * 50_000, ("a cat " * 200)[:MOST]),
        ("a" + "\u0301" * 100_000, "a" + "\u0301" * (MOST - 1)),
        (b"\x80" * 100_000, b"\x80" * 4 * MOST),  # no characters at all
    ],
)
def test_characters_that_no_token_needs_are_cut_before_tokenization(
    refusing, loaded, text, shortened
):
    results = [loaded.signatures["align"](source=tf.constant([one])) for one in (text, shortened)]
    np.testing.assert_array_equal(*(result["source_pieces"] for result in results))
    assert int(results[0]["source_cut"][0]) > 0
    with pytest.raises(tf.errors.InvalidArgumentError):
        refusing.module.predict(tf.constant([text]))


def test_a_task_names_its_answer(summariser):
    served = summariser
    assert served.contract["answer"] == "summary"
    check_output_names(served.contract)
    word = SENTENCES[0].split()[0]
    sides = {"source": tf.constant(SENTENCES[:2]), "target": tf.constant(["a", ""])}
    sides |= {"prefix": tf.constant(["", word]), "phrases": tf.constant(["", f"{word}\n{word}"])}
    for name, promised in served.contract["signatures"].items():
        arguments = [sides[entry["name"]] for entry in promised["inputs"]]
        assert set(served.signatures[name](*arguments)) == set(promised["outputs"])
    assert served.contract["signatures"]["score"]["inputs"][1]["like"] == "summary"


def test_a_given_answer_gets_the_score_that_the_model_gives_it(in_memory, loaded):
    model, _, tokenizers = in_memory
    targets = ["a cat", "", "the the the", "unseen ☃", "a", "dog " * 3]
    result = loaded.signatures["score"](source=SENTENCES, target=targets)
    messages = {name: value.numpy() for name, value in result.items()}
    for row, (sentence, target) in enumerate(zip(SENTENCES, targets, strict=True)):
        source = tokenizers["source"].tokenize(sentence).numpy()[:20].tolist()
        token_ids = tokenizers["target"].tokenize(target).numpy().tolist()
        ids = np.array([[*source, 3]], "int32"), np.array([[*token_ids, 3]], "int32")
        expected = float(model.score(*ids)[0]) if sentence else np.nan
        assert messages["score"][row] == close_to(expected, roundings=1000, nan_ok=True)
        length = messages["target_length"][row]
        assert length == len(token_ids) + 1
        assert messages["target_scores"][row, :length].sum() == close_to(
            float(model.score(*ids)[0]), roundings=1000
        )
        assert (messages["target_scores"][row, length:] == 0).all()
        assert messages["target_pieces"][row, length - 1] == b"</s>"
    assert messages["target_cut"].tolist() == [0] * 6
    empty = loaded.signatures["score"](source=tf.constant([], tf.string), target=[])
    assert empty["score"].shape == (0,)


def test_what_the_search_found_is_scored_as_it_found_it(loaded):
    answers = loaded.signatures["align"](source=SENTENCES)
    scored = loaded.signatures["score"](source=SENTENCES, target=answers["translation"])
    same = 0
    for row in range(len(SENTENCES)):
        lengths = int(answers["target_length"][row]), int(scored["target_length"][row])
        token_ids = answers["target_pieces"][row, : lengths[0]].numpy().tolist()
        if token_ids == scored["target_pieces"][row, : lengths[1]].numpy().tolist():
            same += 1
            assert float(scored["score"][row]) == close_to(
                float(answers["score"][row]), roundings=1000, nan_ok=not SENTENCES[row]
            )
            size = lengths[0], int(scored["source_length"][row])
            alignments = [
                result["alignment"][row, : size[0], : size[1]] for result in (answers, scored)
            ]
            assert_close(*alignments, roundings=1000)
    assert same >= 2


def test_a_target_is_read_as_far_as_an_answer_could_go(make, in_memory):
    served = make(type="greedy", max_source_length=4, max_length_offset=3)
    result = served.module.score(tf.constant(["a cat"]), tf.constant(["a " * 30]))
    token_ids = int(in_memory[2]["target"].tokenize("a " * 30).shape[0])
    assert int(result["target_length"][0]) == 4 * 2 + 3 + 1
    assert int(result["target_cut"][0]) == token_ids - 11


def test_long_sources_are_rejected_if_configured(refusing):
    for function in (refusing.module.predict, refusing.module.align):
        assert function(tf.constant(SENTENCES[:5]))["translation"].shape == (5,)
        message = "more than the 20 tokens of max_source_length"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            function(tf.constant(SENTENCES))


def test_hypotheses_have_their_least_length(make):
    served = make(type="greedy", max_source_length=20, min_length_factor=1.5)
    result = served.module.align(tf.constant(SENTENCES))
    token_ids, lengths = result["source_length"].numpy() - 1, result["target_length"].numpy()
    assert (lengths >= np.ceil(1.5 * token_ids) + 1).all()
    assert (lengths <= 2 * token_ids + 11).all()


@pytest.mark.parametrize("search", ["sampling", slow("beam")])
def test_constraints_hold(make, search):
    """Whatever the search of the model is; the score is that of the whole text."""
    served = make(type=search, max_source_length=20)
    prefixes = ["", "der Hund", "eine", "weit", "", "weg"]
    phrases = ["", "Katze\nlief weit", "weg", "Hund\n\n  eine ", "lief weg", "Katze"]
    arguments = map(tf.constant, (SENTENCES, prefixes, phrases))
    result = served.module.predict_constrained(*arguments)
    texts = [text.decode() for text in result["translation"].numpy()]
    for text, source, prefix, lines in zip(texts, SENTENCES, prefixes, phrases, strict=True):
        if not source:
            assert text == ""
            continue
        assert text.startswith(prefix)
        assert all(line.strip() in text for line in lines.split("\n"))
    again = served.module.score(tf.constant(SENTENCES), result["translation"])
    for row in (0, 1, 3, 4):
        assert result["score"][row] <= 0
        assert again["score"][row] >= result["score"][row] - 20


@pytest.mark.parametrize(
    ("prefix", "phrases", "message"),
    [
        ("", "eine Katze " * 20, "tokens with its phrases"),
        ("", "\n" * 10_000 + "Hund", "tokens with its phrases"),
        (" " * 10_000 + "Hund", "", "tokens with its phrases"),
        ("", "Hund\n☃", "has unknown characters"),
        ("☃", "", "has unknown characters"),
    ],
)
def test_impossible_constraints_are_refused(make, prefix, phrases, message):
    served = make(type="greedy", max_source_length=5, max_length_factor=1.0)
    arguments = map(tf.constant, (["a cat"], [prefix], [phrases]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        served.module.predict_constrained(*arguments)


def test_a_blank_source_has_an_empty_output_without_a_score(summariser, loaded):
    sources = tf.constant(["", "\u3000\xa0", "\u200b \ufeff", "a cat"])
    for name in ("serving_default", "align"):
        result = loaded.signatures[name](source=sources)
        assert result["translation"].numpy().tolist()[:3] == [b"", b"", b""]
        assert np.isnan(result["score"].numpy()).tolist() == [True, True, True, False]
    assert result["target_length"].numpy().tolist()[:3] == [1, 1, 1]
    assert result["target_pieces"].numpy()[:3, 0].tolist() == [b"</s>"] * 3
    scored = loaded.signatures["score"](source=sources, target=["a", "", "a cat", "a"])
    assert np.isnan(scored["score"].numpy()).tolist() == [True, True, True, False]
    hypotheses = summariser.module.n_best(sources)
    assert hypotheses["hypotheses"][:3].numpy().tolist() == [[b"", b""]] * 3
    assert (hypotheses["lengths"][:3].numpy() <= 1).all()
    is_missing = np.isnan(hypotheses["log_probabilities"].numpy()).all(axis=1)
    assert is_missing.tolist() == [True, True, True, False]


def test_every_signature_reports_truncation(summariser):
    served = summariser
    inputs = {"source": tf.constant(["a", "the dog ran far away"])}
    inputs |= {name: tf.constant(["", ""]) for name in ("target", "prefix", "phrases")}
    for name, signature in served.contract["signatures"].items():
        arguments = [inputs[entry["name"]] for entry in signature["inputs"]]
        cut = served.signatures[name](*arguments)["source_cut"].numpy()
        assert cut[0] == 0
        assert cut[1] > 0


def test_n_best(several):
    names = {"serving_default", "align", "score", "nbest", "constrained", "serving_examples"}
    assert set(several.signatures) == names
    sources = tf.constant(SENTENCES[:5])
    result = {name: value.numpy() for name, value in several.module.n_best(sources).items()}
    assert result.pop("source_cut").tolist() == [0] * 5
    assert {value.shape for value in result.values()} == {(5, 3)}
    best = several.module.align(sources)
    assert result["hypotheses"][:, 0].tolist() == best["translation"].numpy().tolist()
    assert_close(result["log_probabilities"][:, 0], best["score"])
    assert (np.diff(result["scores"], axis=1) <= 0).all()
    assert len(set(result["hypotheses"][1])) == 3
    assert result["lengths"][:, 0].tolist() == best["target_length"].numpy().tolist()


def test_n_best_where_there_are_fewer(several):
    result = several.module.n_best(tf.constant(["", "a cat"]))
    assert result["hypotheses"][0].numpy().tolist() == [b"", b"", b""]
    assert np.isnan(result["log_probabilities"][0]).all()
    assert (result["scores"][0, 1:].numpy() < -1e8).all()


def test_the_default_signature_returns_one_hypothesis(make):
    for settings in ({"type": "beam", "n_best": 1}, {"type": "greedy"}, {"type": "sampling"}):
        assert "nbest" not in make(**settings).signatures


def test_what_is_drawn_depends_on_the_text_alone(make, tmp_path):
    """Outputs do not depend on the position in a batch, the other rows or the process."""
    settings = {"type": "sampling", "samples": 3, "top_p": 0.9, "seed": 4}
    served = make(**settings, min_length_factor=0.5, long_source="refuse")
    draw = saved_nbest(served, tmp_path)
    several = draw(source=tf.constant(["a cat", "the dog ran", "a cat"]))["hypotheses"].numpy()
    alone = draw(source=tf.constant(["a cat"]))["hypotheses"].numpy()
    assert several[0].tolist() == several[2].tolist() == alone[0].tolist()
    assert several[0].tolist() != several[1].tolist()
    here = served.signatures["nbest"](tf.constant(["a cat"]))["hypotheses"].numpy()
    assert here.tolist() == alone.tolist()
    assert servable(tmp_path)


def test_a_beam_with_everything_is_servable(several, tmp_path):
    answers = saved_nbest(several, tmp_path)(source=tf.constant(SENTENCES[:5]))
    assert servable(tmp_path)
    finite = np.isfinite(answers["log_probabilities"][:, 0]).tolist()
    assert finite == [bool(text) for text in SENTENCES[:5]]


def saved_nbest(served, folder):
    """The signature ``nbest`` alone, as it is loaded."""
    save_signatures(served, ["nbest"], folder)
    return tf.saved_model.load(str(folder)).signatures["nbest"]
