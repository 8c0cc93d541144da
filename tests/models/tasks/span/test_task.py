"""Answers in passages: what is trained on, what is served, what is decoded while training."""

import itertools

import grpc
import httpx
import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import tensorflow_text as text
from tensorflow_serving.apis import prediction_service_pb2_grpc

from regard.components.settings.trainer import TrainerConfig
from regard.components.tokenizer_trainer.normalization_rules import punctuation_splitting_rules
from regard.components.trainer.export import export
from regard.models import tasks
from regard.models.layers.answer_pointer import best_spans
from regard.models.settings.training import TrainingConfig
from regard.models.tasks.span.description import SpanModelConfig
from regard.models.tasks.span.tokens import to_characters, tokenize
from regard.models.tasks.text_preprocessing import to_dense
from tests.models.tasks.exported import servable
from tests.models.tasks.task_parts import (
    as_rows,
    batch_decoding,
    check_output_names,
    module_of,
    one_row,
)
from tests.models.tasks.tokenizers import trained
from tests.pipeline.deployment.test_serve import start
from tests.processes import free_port
from tests.serving.server.requests import predict_request
from tests.tolerances import assert_close, close_to

PREPROCESSING, NETWORK = tasks.get_preprocessing("span"), tasks.get_network("span")
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
# Texts whose normal form differs from them, and the parts that have tokens of their own.
SURFACES = {
    "Anna went, to": ["Anna", "went", ",", "to"],
    "cafe\u0301-Zu\u0308rich.": ["cafe\u0301", "-", "Zu\u0308rich", "."],
    "10\u00a0km\u3000at ﬁve": ["10", "km", "at", "ﬁve"],
    "東京タワーは、高い。": ["東京タワーは", "、", "高い", "。"],
    "\U0001f600\U0001f600ok ❤\ufe0f!": ["\U0001f600", "\U0001f600", "ok", "❤\ufe0f", "!"],
    f"{FAMILY} ok": ["\U0001f468\u200d", "\U0001f469\u200d", "\U0001f467", "ok"],
    "㍿ﬁ Ⅳ": ["㍿", "ﬁ", "Ⅳ"],
    "a =\u0338 b\x1fc": ["a", "=\u0338", "b", "c"],
    "  two\t\n lines ": ["two", "lines"],
    "": [],
}
PASSAGES = ["Anna took the 東京, cafe\u0301 \U0001f600.", "Anna went to the garden", "", "Bob ran"]
QUESTIONS = ["Where is Anna?", "Who?", "Who?", ""]


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    path = tmp_path_factory.mktemp("rules") / "rules.tsv"
    path.write_text(punctuation_splitting_rules("nmt_nfkc_cf"))
    return str(path)


def tokenizer_model(rules, kind="word"):
    lines = ["Anna went to the garden.", "Where is Anna?", "Bob took the cafe\u0301", *SURFACES]
    lines = [" ".join(line.replace("\x1f", " ").split()) for line in lines if line]
    return trained(lines, model_type=kind, vocab_size=90, normalization_rule_tsv=rules)


def created_tokenizer(rules, kind="word"):
    keras.utils.set_random_seed(4)  # it takes away the tokenizers that are there
    model = tokenizer_model(rules, kind)
    return text.SentencepieceTokenizer(model, out_type=tf.int32, name="passage_tokenizer")


def section(**changes):
    small = {"embedding": 8, "dropout": 0.0, "max_length": 7, "max_answer_tokens": 3}
    parts = {
        "encoder": {"type": "recurrent", "units": 3},
        "modelling": {"type": "transformer", "layers": 1, "heads": 2, "feed_forward": 6},
        "pointer": {"units": 4, "hops": 1},
    }
    return SpanModelConfig.model_validate({**small, **parts, **changes})


def created(tokenizer, **changes):
    model = section(**changes)
    sizes = dict.fromkeys(("passage", "question", "answer"), int(tokenizer.vocab_size()))
    built = NETWORK.build(model, TrainingConfig(), sizes)
    return built, module_of("span", built, {"passage": tokenizer}, model, None).served_model()


@pytest.mark.parametrize("kind", ["word", "unigram", "char"])
def test_tokens_are_parts_of_the_text(kind, rules):
    texts = tf.constant(list(SURFACES))
    tokens = tokenize(created_tokenizer(rules, kind), texts)
    edges = [to_characters(texts, to_dense(part)).numpy() for part in tokens[1:]]
    counts = tokens.ids.row_lengths().numpy()
    for row, (line, expected) in enumerate(SURFACES.items()):
        spans = list(zip(*(part[row, : counts[row]] for part in edges), strict=True))
        surfaces = [line[begin:end] for begin, end in spans]
        if kind == "word":
            assert surfaces == expected
        assert all(surfaces)
        assert all(one[1] <= two[0] for one, two in itertools.pairwise(spans))
        assert "".join(surfaces) == "".join(expected)


def test_offsets_are_those_of_the_tokens_that_are_read(rules, monkeypatch):
    """All characters of a long passage would be a column for every row of a batch."""
    module, sizes = created(created_tokenizer(rules))[1].module, []

    def record(texts, offsets):
        sizes.extend(tf.strings.length(texts).numpy().tolist())
        return to_characters(texts, offsets)

    monkeypatch.setattr("regard.models.tasks.span.served.to_characters", record)
    passages, questions = tf.constant(["Anna went " * 5000, "Anna"]), tf.constant(["Who?"] * 2)
    result = module.align(passages, questions)
    assert max(sizes) == 7 * 32
    assert result["passage_ends"][0].numpy().tolist() == [4, 9, 14, 19, 24, 29, 34]


def preprocess(tokenizer, passages, answers, starts):
    column = [[one] if isinstance(one, str) else one for one in answers]
    widest = max(map(len, column))
    padded = tf.constant([row + [""] * (widest - len(row)) for row in column])
    inputs = {
        "passage": tf.constant(passages)[:, None],
        "question": tf.sparse.from_dense([["Where?"]] * len(passages)),
        "answer": tf.sparse.from_dense(padded),
        "answer_start": tf.constant(starts, tf.int64)[:, None],
    }
    settings = NETWORK.description.preprocessing_section()
    return PREPROCESSING.transform(inputs, {"passage": tokenizer}, settings)


def test_preprocessing_finds_the_tokens_of_the_first_answer(rules):
    tokenizer = created_tokenizer(rules)
    line = "cafe\u0301, 東京タワーは \U0001f600 Anna went"
    cases = {
        "cafe\u0301": (0, 0),
        "東京タワーは \U0001f600": (2, 3),
        "nna wen": (4, 5),
        "e": (0, 0),
    }
    starts = [line.index(answer) for answer in cases]
    result = preprocess(tokenizer, [line] * len(cases), list(cases), starts)
    assert result["answer_tokens"].numpy().tolist() == [list(span) for span in cases.values()]
    row = one_row(result, 1)
    assert PREPROCESSING.lengths(result).numpy().tolist() == [[6]] * 4
    inputs = NETWORK.model_inputs(as_rows(result))
    assert {name: value.dtype for name, value in inputs.items()} == dict.fromkeys(
        ("passage", "question", "answer"), np.int32
    )
    assert inputs["passage"][1].tolist() == row["passage_ids"].tolist()
    assert inputs["answer"].tolist() == [list(span) for span in cases.values()]
    nothing = {**result, "question_ids": result["question_ids"][:, :0]}
    assert PREPROCESSING.lengths(nothing).numpy().tolist() == [[0]] * 4
    requested = module_of("span", tokenizers={"passage": tokenizer}).raw_inputs(row)
    assert requested["question"] == b"where ?"


def test_rows_without_an_answer_token_are_incomplete(rules):
    result = preprocess(
        created_tokenizer(rules), ["", "a b", "a b"], [["x", "y"], " ", "b"], [0, 1, 2]
    )
    assert result["answer_tokens"].numpy().tolist() == [[-1, -1], [-1, -1], [1, 1]]
    assert PREPROCESSING.lengths(result).numpy().tolist() == [[0], [0], [2]]


def test_served_as_the_model(rules, tmp_path):
    tokenizer = created_tokenizer(rules)
    model, served = created(tokenizer)
    model.set_weights([3.0 * weight for weight in model.get_weights()])
    tf.saved_model.save(served.module, str(tmp_path), signatures=served.signatures)
    assert servable(tmp_path)
    loaded = tf.saved_model.load(str(tmp_path)).signatures
    inputs = {"passage": tf.constant(PASSAGES), "question": tf.constant(QUESTIONS)}
    align, best = (
        {name: value.numpy() for name, value in loaded[signature](**inputs).items()}
        for signature in ("align", "serving_default")
    )
    assert set(served.contract["signatures"]["align"]["outputs"]) == set(align)
    check_output_names(served.contract)
    assert align["passage_length"].tolist() == [7, 5, 0, 2]
    assert align["cut"].tolist() == [1, 0, 0, 0]
    assert [one.decode() for one in align["steps"][0]] == ["hop 1", "begin", "end"]
    for name, value in best.items():
        np.testing.assert_array_equal(value, align[name])
    for row, passage in enumerate(PASSAGES):
        begin, end = best["begin"][row], best["end"][row]
        assert best["answer"][row].decode() == passage[begin:end]
        if row >= 2:
            assert (begin, end) == (0, 0)
            assert np.isnan(best["score"][row])
            continue
        count = align["passage_length"][row]
        spans = zip(align["passage_begins"][row], align["passage_ends"][row], strict=True)
        pieces = [passage[b:e] for b, e in list(spans)[:count]]
        assert [one.decode() for one in align["passage_pieces"][row, :count]] == pieces
        assert_close(align["alignment"][row, :, :count].sum(-1), 1.0)
        np.testing.assert_array_equal(align["alignment"][row, :, count:], 0.0)
        ids = [tokenize(tokenizer, tf.constant([side[row]])).ids for side in (PASSAGES, QUESTIONS)]
        logits = model({"passage": ids[0][:, :7].to_tensor(), "question": ids[1].to_tensor()})
        probabilities = tf.nn.softmax(logits["logits"][0]).numpy()
        assert_close(align["alignment"][row, :, :count], probabilities)
        log_probs = tf.math.log(probabilities)
        first, last, score = best_spans(log_probs[None, -2], log_probs[None, -1], 3)
        first, last, score = int(first[0, 0]), int(last[0, 0]), float(score[0, 0])
        assert begin == align["passage_begins"][row, first]
        assert end == align["passage_ends"][row, last]
        assert last - first < 3
        assert best["score"][row] == close_to(score, roundings=1000)
        alone = loaded["align"](**{name: value[row : row + 1] for name, value in inputs.items()})
        assert_close(alone["alignment"][0], align["alignment"][row, :, :count])
    empty = loaded["align"](passage=tf.constant([], tf.string), question=tf.constant([], tf.string))
    assert empty["answer"].shape == (0,)


def test_the_best_answers_are_all_spans_in_the_order_of_their_probability(rules):
    model, served = created(created_tokenizer(rules))
    model.set_weights([3.0 * weight for weight in model.get_weights()])
    inputs = [tf.constant(PASSAGES), tf.constant(QUESTIONS)]
    align, nbest = (
        {name: value.numpy() for name, value in served.signatures[name](*inputs).items()}
        for name in ("align", "nbest")
    )
    assert set(served.contract["signatures"]["nbest"]["outputs"]) == set(nbest)
    for row, passage in enumerate(PASSAGES[:2]):
        count = align["passage_length"][row]
        begin, end = np.log(align["alignment"][row, -2:, :count])
        edges = (align["passage_begins"][row], align["passage_ends"][row])
        expected = [
            (begin[i] + end[j], edges[0][i], edges[1][j], j - i + 1)
            for i in range(count)
            for j in range(i, min(i + 3, count))
        ]
        expected = np.array(sorted(expected, key=lambda span: -span[0])[:20])
        names = ("scores", "begins", "ends", "lengths")
        columns = np.array([nbest[name][row] for name in names]).T[: len(expected)]
        assert_close(columns, expected, roundings=1000)
        texts = [one.decode() for one in nbest["hypotheses"][row]]
        offsets = list(zip(nbest["begins"][row], nbest["ends"][row], strict=True))
        assert texts == [passage[begin:end] for begin, end in offsets]
        assert texts[0] == align["answer"][row].decode()
        assert (nbest["scores"][row, len(expected) :] < -1e8).all()
        assert not any(texts[len(expected) :])
        assert not nbest["lengths"][row, len(expected) :].any()
    np.testing.assert_array_equal(nbest["scores"], nbest["log_probabilities"])
    assert np.isnan(nbest["scores"][2:]).all()
    assert not nbest["ends"][2:].any()
    empty = served.signatures["nbest"](tf.constant([], tf.string), tf.constant([], tf.string))
    assert empty["hypotheses"].shape == (0, 20)


@pytest.mark.slow
def test_a_server_gives_the_same_over_rest_and_grpc(rules, tmp_path):
    tokenizer = created_tokenizer(rules)
    model, served = created(tokenizer)
    config = TrainerConfig(task="span", model=section().model_dump(), training={}, search=None)
    export(model, NETWORK, config, {"passage": tokenizer}, tmp_path / "reader" / "1")
    ports = free_port(), free_port()
    arguments = ("reader", "--port", str(ports[0]), "--rest-api-port", str(ports[1]))
    process = start(tmp_path, *arguments)
    try:
        assert process.stdout.readline().startswith("Serving reader@1")
        channel = grpc.insecure_channel(f"127.0.0.1:{ports[0]}")
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        inputs = {"passage": PASSAGES[:2], "question": QUESTIONS[:2]}
        for name, signature in served.contract["signatures"].items():
            response = stub.Predict(predict_request("reader", name, **inputs), timeout=60)
            outputs = {key: tf.make_ndarray(one) for key, one in response.outputs.items()}
            answer = httpx.post(
                f"http://127.0.0.1:{ports[1]}/v1/models/reader:predict",
                json={"inputs": inputs, "signature_name": name},
                timeout=60,
            )
            by_name = answer.json()["outputs"]
            assert set(by_name) == set(outputs) == set(signature["outputs"])
            expected = served.signatures[name](*(tf.constant(x) for x in inputs.values()))
            for key, value in outputs.items():
                if value.dtype == object:
                    assert np.char.decode(value.astype(bytes), "utf-8").tolist() == by_name[key]
                    assert value.tolist() == expected[key].numpy().tolist()
                else:
                    assert_close(by_name[key], value)
                    assert_close(expected[key], value, roundings=1000)
        channel.close()
    finally:
        process.kill()
        process.communicate()


def test_a_list_of_encoders(rules):
    tokenizer = created_tokenizer(rules)
    encoders = [
        {"type": "convolutional", "units": 6, "layers": 1},
        {"type": "recurrent", "units": 2, "cell": "rnn"},
    ]
    model, served = created(tokenizer, encoder=encoders)
    assert [type(one).__name__ for one in model.encoder.encoders] == [
        "TextConvolutionEncoder",
        "RecurrentEncoder",
    ]
    align, inputs = served.signatures["align"], (tf.constant(PASSAGES), tf.constant(QUESTIONS))
    batched = align(*inputs)
    for row in range(2):
        alone = align(*(value[row : row + 1] for value in inputs))
        assert alone["answer"][0] == batched["answer"][row]
        assert_close(alone["score"][0], batched["score"][row])


def test_answers_while_training_are_texts_of_the_passage(rules):
    tokenizer = created_tokenizer(rules)
    model, _ = created(tokenizer)
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer_model(rules))
    decode = batch_decoding("span", model, {"passage": processor}, section())
    lines = ["Anna went to the garden", "Bob took the garden"]
    passage = tokenize(tokenizer, tf.constant(lines)).ids.to_tensor().numpy()
    question = tokenize(tokenizer, tf.constant(["Where is Anna?", "Who?"])).ids.to_tensor().numpy()
    batch = {"passage": passage, "question": question, "answer": np.array([[3, 4], [0, 0]])}
    outputs, references = decode(batch)
    assert references == ["the garden", "bob"]
    for line, output in zip(lines, outputs, strict=True):
        assert output
        assert output in line.lower()


def test_word_vectors_go_into_the_shared_embedding(rules):
    tokenizer = created_tokenizer(rules)
    model, _ = created(tokenizer)
    embedding, feature = NETWORK.embeddings(model, "file")
    assert (embedding.vocabulary, feature) == (int(tokenizer.vocab_size()), "passage")
    ((table, axis, name),) = NETWORK.vocab_weights(model)
    assert table is model.encoder.embedding.table
    assert (axis, name) == (0, "passage")
