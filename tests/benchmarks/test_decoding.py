"""The table of benchmarks/decoding.py."""

from benchmarks.decoding import table


def test_a_line_tells_ratios_and_what_is_the_same():
    targets = ["ein Hund läuft schnell .", "zwei Katzen schlafen heute ."]
    run = {"answers": targets, "seconds": [1.0, 0.5, 2.0], "latencies": [0.01, 0.02, 0.5]}
    other = [targets[0], "eine Katze schläft"]
    found = {
        "joeynmt": [{**run, "answers": other, "seconds": [4.0], "same_alone": 0.5}],
        "regard": [{**run, "same_alone": 1.0}],
    }
    lines = table(found, targets).splitlines()
    head, joeynmt, regard = (
        [cell.strip() for cell in lines[i].split("|")[1:-1]] for i in (0, 2, 3)
    )
    assert head[1:4] == ["sentences/s", "× joeynmt", "alone p50 ms"]
    assert joeynmt[:3] == ["joeynmt", "0.5", "1.00"]
    assert joeynmt[-2:] == ["50.0%", "50.0%"]
    # The median pass; two of three alone took at most so long.
    assert regard == ["regard", "2.0", "4.00", "20.0", "20.0", "100.00", "100.0%", "100.0%"]
