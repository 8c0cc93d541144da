"""What a model is asked in a check: unusual rows, and rows about its own answers."""

from __future__ import annotations

from serving import questions


def test_the_long_text_is_long():
    assert len(questions.long_text(["ab"])) >= questions.LONG_CHARACTERS - 1
    assert len(questions.long_text([])) >= questions.LONG_CHARACTERS - 1
    assert len(questions.long_text(["x" * 9000])) == questions.LONG_CHARACTERS


def test_unusual_rows_leave_alone_what_is_no_text():
    contract = {
        "inputs": [{"name": "image", "kind": "image"}, {"name": "question", "kind": "text"}]
    }
    first = questions.Question("row 0", {"image": b"i", "question": "who"}, "")
    empty, long = questions.unusual([first], contract)
    assert empty.inputs == {"image": b"i", "question": ""}
    assert long.inputs["image"] == b"i"
    assert len(long.inputs["question"]) > 4990
    assert questions.unusual([], contract) == []
    assert questions.unusual([first], {"inputs": contract["inputs"][:1]}) == []


def test_a_signature_may_ask_about_the_answers():
    entries = [
        {"name": "source", "kind": "text"},
        {"name": "target", "kind": "text", "like": "translation"},
    ]
    first = questions.Question("row 0", {"source": "ab"}, "'ab'", {"score": -1.0})
    (asked,) = questions.about([first], [{"translation": "BA", "score": -1.0}], entries)
    assert asked == questions.Question("row 0", {"source": "ab", "target": "BA"}, "'ab'")
    assert questions.about([first], [], entries[:1]) == [first]
    (embedded,) = questions.about(
        [first], [{}], [{"name": "text", "kind": "text", "like": "source"}]
    )
    assert embedded.inputs == {"text": "ab"}


def test_all_heads_are_asked_of_few_rows():
    rows = [questions.Question(f"row {n}", {"source": "a"}, "a") for n in range(9)]
    contract = {"heads": {"signature": "heads", "looks": []}}
    assert questions.asked_of("heads", rows, contract) == rows[: questions.FEW]
    assert questions.asked_of("align", rows, contract) == rows
    assert questions.asked_of("heads", rows, {"heads": None}) == rows
