from __future__ import annotations

from components.example_validator.tally import Tally, place, reference


def test_a_reference_is_shard_and_row():
    assert place(reference(3, 2**39)) == (3, 2**39)
    assert reference(0, 10**9) < reference(1, 0)


def filled(shard, rows):
    tally = Tally(rows={shard: 10})
    for row in rows:
        tally.add("too_long", reference(shard, row))
    return tally


def test_tallies_add_up_in_any_order():
    parts = [filled(0, [7, 8]), filled(1, range(9)), filled(2, [])]
    whole = Tally.total(parts)
    assert whole == Tally.total(reversed(parts))
    assert whole == Tally.total([Tally.total(parts[:2]), Tally.total(parts[2:])])
    assert whole.rows == {0: 10, 1: 10, 2: 10}
    assert whole.counts == {"too_long": {0: 2, 1: 9}}


def test_the_first_rows_of_the_corpus_are_kept():
    whole = Tally.total([filled(1, range(9)), filled(0, [7, 8])])
    assert [place(ref) for ref, _ in whole.examples["too_long"]] == [
        (0, 7),
        (0, 8),
        (1, 0),
        (1, 1),
        (1, 2),
    ]


def test_what_was_left_out_adds_up_and_survives_a_file():
    whole = Tally.total([Tally(capped=2, seen=b"\x00\xff"), Tally(capped=3, seen=b"a")])
    again = Tally.from_json(whole.to_json())
    assert (again.capped, again.seen) == (5, b"\x00\xffa")
