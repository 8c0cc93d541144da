"""Asking everything at once and some of it alone."""

from benchmarks.asking import in_batches, measure

TEXTS = [f"text {number}" for number in range(20)]


def test_batches_are_answered_in_order():
    sizes = []

    def answer(texts):
        sizes.append(len(texts))
        return [text.upper() for text in texts]

    assert in_batches(answer, 8)(TEXTS) == [text.upper() for text in TEXTS]
    assert sizes == [8, 8, 4]


def test_all_passes_and_those_alone_are_timed():
    asked = []

    def answer(texts):
        asked.append(list(texts))
        return [text[::-1] for text in texts]

    found = measure(answer, TEXTS, passes=2, single=5)
    assert len(found["seconds"]) == 2
    assert found["answers"] == [text[::-1] for text in TEXTS]
    assert len(found["latencies"]) == 5
    assert found["same_alone"] == 1.0
    assert asked[1] == asked[2] == TEXTS
    # Three to warm up, then five that stand evenly among all.
    assert asked[3:] == [[TEXTS[i]] for i in (0, 4, 8, 0, 4, 8, 12, 16)]


def test_an_answer_that_is_another_alone_is_counted():
    found = measure(lambda texts: [str(len(texts))] * len(texts), TEXTS, passes=1, single=4)
    assert found["same_alone"] == 0.0
