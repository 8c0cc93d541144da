"""Throughput in batches and latency of single texts."""

from benchmarks.latency import in_batches, measure

TEXTS = [f"text {number}" for number in range(20)]


def test_batches_keep_the_order():
    sizes = []

    def predict(texts):
        sizes.append(len(texts))
        return [text.upper() for text in texts]

    assert in_batches(predict, 8)(TEXTS) == [text.upper() for text in TEXTS]
    assert sizes == [8, 8, 4]


def test_passes_and_single_texts_are_measured():
    calls = []

    def predict(texts):
        calls.append(list(texts))
        return [text[::-1] for text in texts]

    result = measure(predict, TEXTS, passes=2, single=5)
    assert len(result["seconds"]) == 2
    assert result["outputs"] == [text[::-1] for text in TEXTS]
    assert len(result["latencies"]) == 5
    assert result["same_alone"] == 1.0
    assert calls[1] == calls[2] == TEXTS
    # Three for the warm-up, then five that are evenly spread.
    assert calls[3:] == [[TEXTS[i]] for i in (0, 4, 8, 0, 4, 8, 12, 16)]


def test_outputs_that_depend_on_the_batch_are_counted():
    result = measure(lambda texts: [str(len(texts))] * len(texts), TEXTS, passes=1, single=4)
    assert result["same_alone"] == 0.0
