"""Changed sources of training rows."""

import dataclasses

import numpy as np
import pytest
import sentencepiece

from regard.components.settings.tokenizer import TokenizerConfig
from regard.components.tokenizer_trainer.sentencepiece_training import train_tokenizer
from regard.components.trainer import tensor_batches
from regard.components.trainer.batches import Batches, Sharing
from regard.components.trainer.subword_sampling import SubwordSampling
from regard.components.trainer.tensor_batches import epoch_dataset
from regard.components.trainer.text_noise import TextNoise
from regard.core.ragged import Ragged
from regard.core.text_noise import NoiseOptions, change_text
from regard.models import tasks
from regard.models.settings.text_noise import TextNoiseConfig
from regard.models.vocabulary import EOS, PAD, UNK
from tests.components.trainer.pairs import write_pairs

MAX_LENGTH = 100
TAG = "<fr>"
UPPER = TextNoiseConfig(upper_case=1.0)
MIXED = TextNoiseConfig(upper_case=0.25, missing_punctuation=0.25, typing_errors=0.25)


@pytest.fixture(scope="module")
def texts():
    random, syllables = np.random.default_rng(0), ["ba", "ko", "ne", "ti", "su", "ral"]
    words = ["".join(random.choice(syllables, random.integers(2, 5))) for _ in range(50)]
    lines = (" ".join(random.choice(words, random.integers(2, 7))) for _ in range(400))
    return [f"{line.capitalize()}." for line in lines]


@pytest.fixture(scope="module", params=["bpe", "unigram", "char"])
def model(request, texts):
    settings = TokenizerConfig.model_validate(
        {"type": request.param, "vocab_size": 100, "user_defined_symbols": [TAG, "\u2581" + TAG]}
    )
    lines = [*texts, "QWERTYUIOPASDFGHJKLZXCVBNM qwertyuiopasdfghjklzxcvbnm"]
    return train_tokenizer([line.encode() for line in lines], settings).proto


@pytest.fixture(scope="module")
def tokenizer(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def ragged(rows):
    values = np.array([token for row in rows for token in row], np.int32)
    return Ragged.from_lengths(values, [len(row) for row in rows])


def make_noise(model, config=MIXED, seed=5, max_length=MAX_LENGTH):
    return TextNoise({"source": model}, config, max_length, seed)


def change(noise, tokenizer, lines, epoch=0, numbers=None):
    """The texts of the changed rows."""
    rows = {"source_ids": ragged(tokenizer.encode(lines)), "target_ids": ragged([[7]] * len(lines))}
    numbers = range(len(lines)) if numbers is None else numbers
    result = noise(rows, epoch, numbers)
    assert result["target_ids"] is rows["target_ids"]
    ids = result["source_ids"]
    return tokenizer.decode([ids[row].tolist() for row in range(len(ids))])


def test_changes_are_those_of_the_text_in_their_shares(model, tokenizer, texts):
    changed = change(make_noise(model), tokenizer, texts)
    options = NoiseOptions()
    counts = dict.fromkeys(("clean", *MIXED.probabilities()), 0)
    for row, (old, new) in enumerate(zip(texts, changed, strict=True)):
        results = {"clean": old}
        results |= {
            kind: change_text(old, kind, options, (5, 0, row, 0, 1))
            for kind in MIXED.probabilities()
        }
        kinds = [kind for kind, text in results.items() if text == new]
        assert kinds, (old, new)
        counts[kinds[0]] += 1
    assert counts["upper_case"] == pytest.approx(100, abs=25)
    assert counts["missing_punctuation"] == pytest.approx(100, abs=25)
    # Of six words or fewer, none may have an error.
    assert 25 < counts["typing_errors"] < 100


def test_a_change_depends_on_seed_epoch_and_row_only(model, tokenizer, texts):
    whole = change(make_noise(model), tokenizer, texts)
    order = np.random.default_rng(1).permutation(len(texts))[:50]
    alone = change(make_noise(model), tokenizer, [texts[row] for row in order], numbers=order)
    assert alone == [whole[row] for row in order]
    assert change(make_noise(model), tokenizer, texts, epoch=1) != whole
    assert change(make_noise(model, seed=6), tokenizer, texts) != whole


def test_rows_without_a_change_keep_their_tokens(model, tokenizer, texts):
    unusual = [list(tokenizer.encode(text, out_type=int))[::-1] for text in texts[:20]]
    noise = make_noise(model, TextNoiseConfig(missing_accents=1.0))
    result = noise({"source_ids": ragged(unusual)}, 0, range(20))["source_ids"]
    assert [result[row].tolist() for row in range(20)] == unusual


def test_unknown_characters_long_and_empty_rows_keep_their_tokens(model, tokenizer):
    text = tokenizer.encode("Bako.")
    rows = [[*text, UNK], text, []]
    longer = len(tokenizer.encode("BAKO."))
    for max_length, expected in ((longer, "Bako."), (longer + 1, "BAKO.")):
        noise = make_noise(model, UPPER, max_length=max_length)
        result = noise({"source_ids": ragged(rows)}, 0, range(3))["source_ids"]
        assert result[0].tolist() == rows[0]
        assert tokenizer.decode(result[1].tolist()) == expected or longer == len(text)
        assert len(result[2]) == 0


def test_tags_do_not_change(model, tokenizer):
    row = tokenizer.encode(f"{TAG} Bako neti.")
    noise = make_noise(model, UPPER)
    ids = noise({"source_ids": ragged([row])}, 0, [0])["source_ids"][0].tolist()
    assert ids == tokenizer.encode(f"{TAG} BAKO NETI.")
    assert ids[0] == row[0] == tokenizer.piece_to_id("\u2581" + TAG)


@pytest.fixture(scope="module")
def batches(model, tokenizer, texts, tmp_path_factory):
    ids = tokenizer.encode(texts)
    path = tmp_path_factory.mktemp("rows") / "rows.arrow"
    file = write_pairs(path, list(zip(ids, ids, strict=True)))
    task = tasks.get_network("translation")
    return Batches(
        [file], task, batch_tokens=500, max_length=MAX_LENGTH, noise=make_noise(model, MIXED)
    )


def rows_of(dataset):
    """The sources and the targets of all rows, without EOS."""
    return [
        tuple(tuple(row[(row != PAD) & (row != EOS)].tolist()) for row in pair)
        for batch in dataset.as_numpy_iterator()
        for pair in zip(batch["source"], batch["target"], strict=True)
    ]


def test_batches_change_sources_and_keep_targets(batches, tokenizer, texts):
    pairs = rows_of(epoch_dataset(batches, 0))
    assert sorted(tokenizer.decode([list(target) for _, target in pairs])) == sorted(texts)
    assert 0.5 < np.mean([source != target for source, target in pairs]) < 0.8
    clean = rows_of(epoch_dataset(dataclasses.replace(batches, noise=None), 0))
    assert all(source == target for source, target in clean)


def test_equal_rows_after_a_resume_and_in_batches_of_another_size(batches, monkeypatch):
    whole = rows_of(epoch_dataset(batches, 1))
    for threads in (1, 8):
        monkeypatch.setattr(tensor_batches, "_PARALLEL_BATCHES", threads)
        rest = rows_of(epoch_dataset(batches, 1, skip=3))
        assert rest == whole[-len(rest) :]
    other = dataclasses.replace(batches, batch_tokens=900)
    assert sorted(rows_of(epoch_dataset(other, 1))) == sorted(whole)
    assert sorted(rows_of(epoch_dataset(batches, 2))) != sorted(whole)


def test_workers_read_the_rows_of_a_single_device(batches):
    whole, half = batches.read(0, 0), -(-batches.count_rows(0, 0) // 2)
    for worker in range(2):
        part = dataclasses.replace(batches, sharing=Sharing(worker, 2)).read_local(0, 0)
        rows = whole["source"][worker * half : (worker + 1) * half]
        width = max(part["source"].shape[1], rows.shape[1])
        padded = [
            np.pad(array, [(0, half - len(array)), (0, width - array.shape[1])])
            for array in (part["source"], rows)
        ]
        np.testing.assert_array_equal(*padded)


@pytest.mark.parametrize("model", ["bpe", "unigram"], indirect=True)
def test_segmentations_are_drawn_of_changed_texts(batches, model, tokenizer):
    plain = rows_of(epoch_dataset(batches, 0))
    sampling = SubwordSampling({"source": model, "target": model}, 0.9, MAX_LENGTH, seed=5)
    sampled = rows_of(epoch_dataset(dataclasses.replace(batches, sampling=sampling), 0))
    for side in range(2):
        assert [tokenizer.decode([*row[side]]) for row in sampled] == [
            tokenizer.decode([*row[side]]) for row in plain
        ]
