"""Outputs of untrained models have every span of their source, and tags that nest."""

import re
from collections import Counter

import keras
import numpy as np
import pytest
import tensorflow as tf

from regard.components.common.tokenizers import create_tokenizers, vocabulary_sizes
from regard.components.settings.trainer import TrainerConfig
from regard.models import tasks
from regard.models.protected_spans import protection_symbols, symbol
from tests.models.tasks.task_parts import module_of
from tests.models.tasks.tokenizers import trained

LINES = ["a cat sat on the mat", "the dog ran far away from home", "see ( it ) , then !"]
KINDS = ["urls", "emails", "numbers", "markup", "placeholders"]
SOURCES = [
    "a <b>cat</b> sat, see http://a.b/c?x=1.",
    "the dog ran",
    "",
    "<i>the <b>dog</b></i> ran {0} far <br/> away <u>x 7 7",
    "<b></b>",
]
# No letters of the vocabulary: outputs have them as spans only.
SPAN = re.compile(r"<[^<>]*>|http://[^ <>]*=1|\{0\}|7")
OPTIONS = {
    "greedy": {"type": "greedy", "no_repeat_ngram_size": 2},
    "beam": {"type": "beam", "beam_size": 2, "n_best": 2, "patience": 1.0},
    "sampling": {"type": "sampling", "samples": 2},
}


@pytest.fixture(scope="module")
def create():
    options = {"vocab_size": 150, "user_defined_symbols": protection_symbols()}
    model = trained(LINES, **options, model_type="bpe")

    def create(search, tags=(), **protect):
        settings = TrainerConfig.model_validate(
            {
                "task": "translation",
                "model": {
                    "embedding": 8,
                    "encoder": {"type": "recurrent", "units": 8},
                    "decoder": {"type": "luong", "units": 8},
                    "attention": {"score": "general"},
                },
                "training": {"precision": "float32"},
                "search": {"max_source_length": 40, **search},
                "protect": {"kinds": KINDS, **protect},
            }
        )
        keras.utils.set_random_seed(3)
        tokenizers = create_tokenizers({"source": model, "target": model})
        network = tasks.get_network("translation")
        sizes = vocabulary_sizes(tokenizers)
        built = network.build(settings.model, settings.training, sizes)
        for weight in built.weights:
            weight.assign(weight * 3.0)
        return module_of(
            "translation",
            built,
            tokenizers,
            settings.model,
            settings.search,
            protect=settings.protect,
            tags=tags,
        )

    return create


def check(source, output):
    """Check that an output has the spans of its source, and nested pairs."""
    assert Counter(SPAN.findall(output)) == Counter(SPAN.findall(source))
    stack = []
    for tag in re.findall(r"</?[bi]>", output):
        if tag[1] == "/":
            assert stack.pop() == f"<{tag[2:]}"
        else:
            stack.append(tag)
    assert not stack


def texts(outputs, name="translation"):
    return [text.decode() for text in np.ravel(outputs[name].numpy())]


@pytest.mark.parametrize("placement", ["tokens", "attention"])
@pytest.mark.parametrize("name", OPTIONS)
def test_outputs_have_all_spans(create, name, placement):
    module = create(OPTIONS[name], placement=placement)
    predicted = module.predict(tf.constant(SOURCES))
    assert predicted["source_unpaired"].numpy().tolist() == [0, 0, 0, 1, 0]
    outputs = texts(predicted)
    for source, output in zip(SOURCES, outputs, strict=True):
        check(source, output)
    assert outputs[2] == ""
    if placement == "attention":
        assert outputs[4] == "<b></b>"
    if name != "greedy":
        every = texts(module.n_best(tf.constant(SOURCES)), "hypotheses")
        for source, output in zip(np.repeat(SOURCES, 2), every, strict=True):
            check(source, output)


@pytest.mark.parametrize("placement", ["tokens", "attention"])
def test_constraints_may_contain_spans(create, placement):
    module = create(OPTIONS["beam"], placement=placement)
    sources = [SOURCES[0], "the cat 7 7 sat", "the cat 7 <b>sat</b>"]
    prefixes, phrases = ["", "the 7", "a <i>mat"], ["see http://a.b/c?x=1", "", "far 7\n7 away"]
    outputs = module.predict_constrained(*map(tf.constant, (sources, prefixes, phrases)))
    first, second, third = texts(outputs)
    # What a phrase contains may be repeated.
    check(sources[0], first.replace("http://a.b/c?x=1", "", first.count("http") - 1))
    assert "see http://a.b/c?x=1" in first
    check(sources[1], second)
    assert second.startswith("the 7")
    assert third.startswith("a mat")
    assert "far 7" in third
    assert "7 away" in third
    check(sources[2], third.replace("7", "", third.count("7") - 1))


def test_tokens_are_shown_with_their_texts(create):
    outputs = create(OPTIONS["beam"]).align(tf.constant(SOURCES[:2]))
    pieces = [piece.decode() for piece in outputs["source_pieces"].numpy()[0]]
    assert pieces[:4] == ["\u2581a", "<b>", "\u2581cat", "</b>"]
    assert "\u2581http://a.b/c?x=1" in pieces
    target = [piece.decode() for piece in outputs["target_pieces"].numpy()[0]]
    target = [piece.removeprefix("\u2581") for piece in target]
    assert {"<b>", "</b>"} <= set(target)
    assert outputs["alignment"].shape[1:] == [len(target), len(pieces)]


def test_attention_does_not_see_tags(create):
    module = create(OPTIONS["greedy"], placement="attention")
    tagged = module.align(tf.constant(["a <b>cat</b> sat"]))
    plain = module.align(tf.constant(["a cat sat"]))
    assert tagged["source_pieces"].numpy().tolist() == plain["source_pieces"].numpy().tolist()
    assert re.sub("</?b>", "", texts(tagged)[0]) == texts(plain)[0]
    assert tagged["score"].numpy() == pytest.approx(plain["score"].numpy())


def test_outputs_can_be_scored(create):
    module = create(OPTIONS["beam"])
    pairs = ["a <b>cat</b> sat 7"], ["the <b>dog</b> ran 7"]
    outputs = module.score(*map(tf.constant, pairs))
    pieces = [piece.decode() for piece in outputs["target_pieces"].numpy()[0]]
    assert pieces == ["\u2581the", "<b>", "\u2581dog", "</b>", "\u2581ran", "\u25817", "</s>"]
    assert np.isfinite(outputs["score"].numpy()).all()


def test_rows_without_spans_do_not_depend_on_others(create):
    module = create(OPTIONS["beam"])
    alone = module.predict(tf.constant(SOURCES[1:2]))
    batched = module.predict(tf.constant(SOURCES))
    assert texts(alone)[0] == texts(batched)[1]
    assert alone["score"][0].numpy() == pytest.approx(batched["score"][1].numpy(), rel=1e-5)


def test_tags_of_the_model_are_no_markup(create):
    module = create(OPTIONS["greedy"], tags=("de",))
    outputs = texts(module.predict(tf.constant(["<de> a <b>cat</b>", "<de> "])))
    check("<b>cat</b>", outputs[0])
    assert outputs[1] == ""


def test_long_sources(create):
    module = create(OPTIONS["greedy"])
    source = "<b>a</b> " * 10**5
    outputs = module.predict(tf.constant([source, f"<b>{'cat ' * 100}</b> 7"]))
    assert (outputs["source_cut"].numpy() > 0).all()
    first, second = texts(outputs)
    assert 1 <= first.count("<b>") == first.count("</b>")
    assert "<b>" not in second  # its other tag was cut
    refusing = create({**OPTIONS["greedy"], "long_source": "refuse"})
    with pytest.raises(tf.errors.InvalidArgumentError):
        refusing.predict(tf.constant([source]))


def test_spans_that_look_like_tokens(create):
    module = create(OPTIONS["greedy"])
    source = f"a {symbol(3)} \u2581cat <s> </s> <pad> <unk> <0x41> {{0}} 7"
    (output,) = texts(module.predict(tf.constant([source])))
    for span in ("<s>", "</s>", "<pad>", "<unk>", "<0x41>", "{0}", "7"):
        assert (span in output) == (span != "<0x41>")
    assert symbol(3) not in output
