"""Random segmentations of the training texts."""

import dataclasses

import numpy as np
import pytest
import sentencepiece

from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.tokenizer_trainer.sentencepiece_training import train_tokenizer
from regard.components.trainer import tensor_batches
from regard.components.trainer.batches import Batches
from regard.components.trainer.subword_sampling import SubwordSampling
from regard.components.trainer.tensor_batches import epoch_dataset
from regard.core.ragged import Ragged
from regard.models import tasks
from regard.models.vocabulary import EOS, PAD, UNK
from tests.components.trainer.pairs import write_pairs

MAX_LENGTH = 100


@pytest.fixture(scope="module")
def texts():
    random, syllables = np.random.default_rng(0), ["ba", "ko", "ne", "ti", "su", "ral"]
    words = ["".join(random.choice(syllables, random.integers(2, 5))) for _ in range(50)]
    return [" ".join(random.choice(words, random.integers(1, 7))) for _ in range(200)]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def model(request, texts):
    settings = TokenizerConfig.model_validate({"type": request.param, "vocab_size": 80})
    return train_tokenizer([text.encode() for text in texts], settings).proto


@pytest.fixture(scope="module")
def tokenizer(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


@pytest.fixture(scope="module")
def batches(model, tokenizer, texts, tmp_path_factory):
    ids = tokenizer.encode(texts)
    path = tmp_path_factory.mktemp("rows") / "rows.arrow"
    file = write_pairs(path, list(zip(ids, ids[::-1], strict=True)))
    sampling = SubwordSampling({"source": model, "target": model}, 0.3, MAX_LENGTH, seed=5)
    task = tasks.get_network("translation")
    return Batches([file], task, batch_tokens=500, max_length=MAX_LENGTH, sampling=sampling)


def rows_of(dataset):
    """The sources and the targets of all rows, without EOS."""
    return [
        tuple(tuple(row[(row != PAD) & (row != EOS)].tolist()) for row in pair)
        for batch in dataset.as_numpy_iterator()
        for pair in zip(batch["source"], batch["target"], strict=True)
    ]


def test_the_texts_stay_and_their_segmentations_change(batches, tokenizer):
    plain = rows_of(epoch_dataset(dataclasses.replace(batches, sampling=None), 0))
    sampled = rows_of(epoch_dataset(batches, 0))
    assert [tokenizer.decode([*map(list, row)]) for row in sampled] == [
        tokenizer.decode([*map(list, row)]) for row in plain
    ]
    changed = np.mean([a != b for a, b in zip(plain, sampled, strict=True)])
    assert changed > 0.15  # a long token is much more probable than its parts
    assert all(len(side) < MAX_LENGTH for row in sampled for side in row)
    # The tokens of both sides of a row with equal texts are drawn separately.
    assert len({row for epoch in range(3) for row in rows_of(epoch_dataset(batches, epoch))}) > 230


def test_equal_seeds_give_equal_batches_also_after_a_resume(batches, model, monkeypatch):
    whole = rows_of(epoch_dataset(batches, 1))
    for threads in (1, 8):
        monkeypatch.setattr(tensor_batches, "_PARALLEL_BATCHES", threads)
        again = SubwordSampling({"source": model, "target": model}, 0.3, MAX_LENGTH, seed=5)
        other = dataclasses.replace(batches, sampling=again)
        assert rows_of(epoch_dataset(other, 1)) == whole
        rest = rows_of(epoch_dataset(other, 1, skip=3))
        assert rest == whole[-len(rest) :]
    another = SubwordSampling({"source": model, "target": model}, 0.3, MAX_LENGTH, seed=6)
    assert rows_of(epoch_dataset(dataclasses.replace(batches, sampling=another), 1)) != whole


def test_chosen_batches_in_the_order_of_evaluation(batches):
    chosen = rows_of(epoch_dataset(batches, numbers=np.array([2, 0])))
    third, first = (
        rows_of(epoch_dataset(batches, numbers=np.array([number]))) for number in (2, 0)
    )
    assert chosen == third + first
    plain = dataclasses.replace(batches, sampling=None)
    assert (
        first
        != rows_of(epoch_dataset(plain, numbers=np.array([0])))
        == rows_of(epoch_dataset(plain))[: len(first)]
    )


def ragged(rows):
    values = np.array([token for row in rows for token in row], np.int32)
    return Ragged.from_lengths(values, [len(row) for row in rows])


def test_unknown_characters_and_long_rows_keep_their_tokens(model, tokenizer):
    rows = [[*tokenizer.encode("bako"), UNK], tokenizer.encode("bakoneti"), []]
    sampling = SubwordSampling({"source": model}, 0.9, 1 + len(rows[1]), seed=5)
    for draw in range(20):
        sampled = sampling({"source_ids": ragged(rows)}, 0, draw)["source_ids"]
        assert sampled[0].tolist() == rows[0]
        assert len(sampled[1]) <= len(rows[1])
        assert len(sampled[2]) == 0
        assert tokenizer.decode(sampled[1].tolist()) == "bakoneti"
