"""The plan of an epoch, compared with its definition."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from regard.components.trainer.epoch_plan import Buckets, EpochPlan, TagSampling


def batches_of(plan):
    return [plan.batch(i) for i in range(len(plan))]


@hypothesis.given(
    lengths=strategies.lists(strategies.integers(-1, 60), max_size=200),
    batch_tokens=strategies.integers(1, 500),
    max_length=strategies.integers(1, 50),
    seed=strategies.sampled_from([None, (0, 0), (7, 3)]),
)
def test_every_usable_row_is_in_one_batch_of_its_bucket(lengths, batch_tokens, max_length, seed):
    lengths = np.array(lengths, np.int32)
    buckets = Buckets.create(batch_tokens, max_length)
    batches = batches_of(EpochPlan(lengths, buckets, seed))
    rows = sorted(row for rows, _ in batches for row in rows.tolist())
    assert rows == [i for i, n in enumerate(lengths) if 0 < n <= max_length]
    for rows, bucket in batches:
        low = buckets.bounds[bucket - 1] if bucket else 0
        assert (low < lengths[rows]).all()
        assert (lengths[rows] <= buckets.bounds[bucket]).all()
        assert 0 < len(rows) <= buckets.sizes[bucket]
        assert len(rows) == 1 or 2 * len(rows) * lengths[rows].max() <= batch_tokens
    partial = [bucket for rows, bucket in batches if len(rows) < buckets.sizes[bucket]]
    assert len(partial) == len(set(partial))  # only the last batch of a bucket is not full
    usable = lengths[(lengths > 0) & (lengths <= max_length)]
    counts = np.bincount(np.searchsorted(buckets.bounds, usable), minlength=len(buckets.bounds))
    assert len(batches) == sum(-(-counts // buckets.sizes))


def test_bounds_rise_up_to_the_limit():
    for limit in (1, 8, 9, 100, 5000):
        buckets = Buckets.create(1000, limit)
        assert buckets.bounds[-1] == limit
        assert (np.diff(buckets.bounds) > 0).all()
        assert len(buckets.bounds) < 2**16
    assert Buckets.create(1000, 10).sizes.tolist() == [62, 50]


def test_the_order_depends_on_the_seed_and_mixes_all_rows():
    count = 20_000
    lengths = np.random.default_rng(0).integers(1, 30, count).astype(np.int32)
    buckets = Buckets.create(2000, 32)

    def order(*seed):
        return np.concatenate([rows for rows, _ in batches_of(EpochPlan(lengths, buckets, seed))])

    assert (order(1, 0) == order(1, 0)).all()
    for other in (order(1, 1), order(0, 1), order(0, 2)):
        assert (order(1, 0) != other).mean() > 0.99
    # |place - row| of a random order is a third of all rows, and neighbours are as far apart.
    shuffled = order(1, 0)
    assert np.abs(shuffled - np.arange(count)).mean() == pytest.approx(count / 3, rel=0.03)
    assert np.abs(np.diff(shuffled)).mean() == pytest.approx(count / 3, rel=0.03)
    # Lengths are mixed too: the mean length of the first tenth of the batches is that of all.
    batches = batches_of(EpochPlan(lengths, buckets, (1, 0)))
    first = [lengths[rows].mean() for rows, _ in batches[: len(batches) // 4]]
    every = [lengths[rows].mean() for rows, _ in batches]
    assert np.mean(first) == pytest.approx(np.mean(every), rel=0.1)


def test_without_a_seed_rows_keep_their_order():
    lengths = np.array([20, 3, 3, 20, 0, 3], np.int32)
    batches = batches_of(EpochPlan(lengths, Buckets.create(80, 20), None))
    assert [rows.tolist() for rows, _ in batches] == [[1, 2, 5], [0, 3]]


COUNTS = np.array([6000, 1500, 40])


@pytest.fixture(scope="module")
def tagged():
    """The lengths and the tags of rows of three tags in random order, some of them not usable."""
    random = np.random.default_rng(5)
    tags = random.permutation(np.repeat([4, 9, 7], COUNTS))
    lengths = random.integers(1, 30, len(tags)).astype(np.int32)
    lengths[::50] = 0
    return lengths, tags


def drawn_rows(tagged, temperature, seed, buckets=None):
    buckets = buckets or Buckets.create(2000, 32)
    return EpochPlan(tagged[0], buckets, seed, TagSampling(tagged[1], temperature))


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0, 100.0])
def test_tags_are_drawn_in_proportion_to_a_power_of_their_rows(tagged, temperature):
    lengths, tags = tagged
    usable = np.flatnonzero(lengths)
    counts = np.bincount(tags[usable])
    weights = counts ** (1 / temperature)
    expected = weights / weights.sum() * len(usable)
    buckets = Buckets.create(2000, 32)
    rows = np.concatenate([r for r, _ in batches_of(drawn_rows(tagged, temperature, (1, 0)))])
    assert np.isin(rows, usable).all()
    totals = np.bincount(tags[rows])
    groups = len(buckets.bounds)  # a part of a row is drawn at most once more in each group
    assert (totals[counts > 0] >= np.floor(expected[counts > 0] - 1e-6)).all()
    assert (totals <= expected + groups).all()
    for tag in np.flatnonzero(counts):  # each row as often as the others
        times = np.bincount(rows[tags[rows] == tag], minlength=len(tags))[usable]
        times = times[tags[usable] == tag]
        rate = expected[tag] / counts[tag]
        assert set(times) <= {int(np.floor(rate + 1e-6)), int(np.ceil(rate - 1e-6))}
    if temperature == 1:
        assert sorted(rows) == list(usable)


def test_sampled_epochs_have_as_many_batches_and_other_rows(tagged):
    plans = [drawn_rows(tagged, 5.0, (3, epoch)) for epoch in range(4)]
    assert len({len(plan) for plan in plans}) == 1
    first, second = (np.concatenate([rows for rows, _ in batches_of(plan)]) for plan in plans[:2])
    assert sorted(first) != sorted(second)  # of the largest tag, another part
    again = drawn_rows(tagged, 5.0, (3, 0))
    assert (first == np.concatenate([rows for rows, _ in batches_of(again)])).all()
    large = tagged[1] == 4
    rows_of_all = set().union(*(rows.tolist() for plan in plans for rows, _ in batches_of(plan)))
    union = len(rows_of_all & set(np.flatnonzero(large & (tagged[0] > 0))))
    assert union > 1.5 * np.isin(first, np.flatnonzero(large)).sum()
    for plan in plans:  # copies of a row are spread over the epoch
        batches = batches_of(plan)
        assert np.mean([len(set(rows.tolist())) / len(rows) for rows, _ in batches]) > 0.5


def test_a_rare_length_of_a_frequent_tag_is_not_left_out():
    lengths = np.array([*[5] * 400, 30, *[5] * 10], np.int32)
    tags = np.array([*[0] * 401, *[1] * 10])
    plan = drawn_rows((lengths, tags), 100.0, (0, 0))
    assert 400 in np.concatenate([rows for rows, _ in batches_of(plan)])


def test_without_a_seed_rows_are_not_sampled(tagged):
    rows = np.concatenate([rows for rows, _ in batches_of(drawn_rows(tagged, 5.0, None))])
    assert sorted(rows) == list(np.flatnonzero(tagged[0]))
