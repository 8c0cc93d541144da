"""The table of benchmarks/training.py."""

from benchmarks.training import SYSTEMS, System, speed, table

RUN = {"pieces_a_batch": 1700.4, "parameters": 7_580_000, "accuracy": 0.25, "known_of": 31_000}


def test_the_speed_is_the_median_part_and_not_the_mean_batch():
    even = [(1.0, 100)] * 6
    assert speed(even, parts=3) == 100.0
    # One slow part of three; in each part, pieces and seconds are summed.
    assert speed([(9.0, 100), (1.0, 100), *even[:4]], parts=3) == 100.0
    assert speed([(1.0, 100), (3.0, 100)], parts=1) == 50.0


def test_few_batches_are_parts_of_their_own():
    assert speed([(1.0, 100), (2.0, 100), (4.0, 100)], parts=9) == 50.0


def test_ratios_and_shares_are_of_the_same_round():
    systems = {"joeynmt": System("joeynmt"), "regard": System("regard")}
    limits = ({"float32": 200e9, "bfloat16": 400e9}, {"float32": 100e9, "bfloat16": 200e9})
    found = {
        "joeynmt": [
            {**RUN, "batches": [(1.0, pieces)], "rates": {"float32": 100e9}}
            for pieces in (500, 250)
        ],
        "regard": [
            {**RUN, "batches": [(1.0, pieces)], "rates": rates}
            for pieces, rates in zip((3000, 1500), limits, strict=True)
        ],
    }
    lines = table(systems, found, {False: 20e6, True: 30e6}).splitlines()
    head, _, joeynmt, regard = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in lines[:4]
    )
    assert head[1:6] == ["pieces/s", "× joeynmt", "GFLOP/s", "of float32", "of bfloat16"]
    assert joeynmt[:3] == ["joeynmt", "375", "1.00"]
    assert joeynmt[5] == ""
    # The machine was half as fast in the second round, and the system with it.
    assert regard[:6] == ["regard", "2,250", "6.00", "45", "30%", "15%"]
    assert regard[6:] == ["1,700", "7.58 M", "25.0% of 31 k"]
    assert "20.0 or 30.0 MFLOP" in lines[-1]


def test_feeding_is_measured_beside_its_like():
    fed = {name for name, system in SYSTEMS["recurrent"].items() if system.input_feeding}
    assert fed == {"joeynmt-feeding", "regard-feeding", "regard-feeding-bfloat16"}
