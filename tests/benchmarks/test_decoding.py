"""The table of benchmarks/decoding.py."""

from benchmarks.decoding import format_results


def test_rows_contain_ratios_and_shares_of_equal_outputs():
    targets = ["ein Hund läuft schnell .", "zwei Katzen schlafen heute ."]
    run = {"outputs": targets, "seconds": [1.0, 0.5, 2.0], "latencies": [0.01, 0.02, 0.5]}
    other = [targets[0], "eine Katze schläft"]
    results = {
        "joeynmt": [{**run, "outputs": other, "seconds": [4.0], "same_alone": 0.5}],
        "regard": [{**run, "same_alone": 1.0}],
    }
    lines = format_results(results, targets).splitlines()
    header, joeynmt, regard = (
        [cell.strip() for cell in lines[i].split("|")[1:-1]] for i in (0, 2, 3)
    )
    assert header[1:4] == ["sentences/s", "× joeynmt", "single p50 ms"]
    assert joeynmt[:3] == ["joeynmt", "0.5", "1.00"]
    assert joeynmt[-2:] == ["50.0%", "50.0%"]
    # The median pass; two of three single texts took at most this long.
    assert regard == ["regard", "2.0", "4.00", "20.0", "20.0", "100.00", "100.0%", "100.0%"]
