"""The table of benchmarks/training.py."""

from benchmarks.training import SYSTEMS, System, format_results, tokens_per_second

RUN = {
    "tokens_per_batch": 1700.4,
    "parameters": 7_580_000,
    "accuracy": 0.25,
    "accuracy_tokens": 31_000,
}


def test_the_speed_is_the_median_of_the_parts():
    even = [(1.0, 100)] * 6
    assert tokens_per_second(even, parts=3) == 100.0
    # One slow part of three; tokens and seconds are summed within each part.
    assert tokens_per_second([(9.0, 100), (1.0, 100), *even[:4]], parts=3) == 100.0
    assert tokens_per_second([(1.0, 100), (3.0, 100)], parts=1) == 50.0


def test_few_batches():
    assert tokens_per_second([(1.0, 100), (2.0, 100), (4.0, 100)], parts=9) == 50.0


def test_ratios_and_shares_compare_values_of_the_same_round():
    systems = {"joeynmt": System("joeynmt"), "regard": System("regard")}
    limits = ({"float32": 200e9, "bfloat16": 400e9}, {"float32": 100e9, "bfloat16": 200e9})
    results = {
        "joeynmt": [
            {**RUN, "batches": [(1.0, tokens)], "rates": {"float32": 100e9}}
            for tokens in (500, 250)
        ],
        "regard": [
            {**RUN, "batches": [(1.0, tokens)], "rates": rates}
            for tokens, rates in zip((3000, 1500), limits, strict=True)
        ],
    }
    lines = format_results(systems, results, {False: 20e6, True: 30e6}).splitlines()
    header, _, joeynmt, regard = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in lines[:4]
    )
    assert header[1:6] == ["tokens/s", "× joeynmt", "GFLOP/s", "of float32", "of bfloat16"]
    assert joeynmt[:3] == ["joeynmt", "375", "1.00"]
    assert joeynmt[5] == ""
    # In the second round, the machine and the system are half as fast.
    assert regard[:6] == ["regard", "2,250", "6.00", "45", "30%", "15%"]
    assert regard[6:] == ["1,700", "7.58 M", "25.0% of 31 k"]
    assert "20.0 or 30.0 MFLOP" in lines[-1]


def test_systems_with_input_feeding():
    names = {name for name, system in SYSTEMS["recurrent"].items() if system.input_feeding}
    assert names == {"joeynmt-feeding", "regard-feeding", "regard-feeding-bfloat16"}
