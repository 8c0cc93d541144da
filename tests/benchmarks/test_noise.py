from collections import Counter

from benchmarks.noise import KINDS, add_noise, write

PAIRS = [(f"a{i} b{i} c{i} d{i}", f"A{i} B{i} C{i} D{i}") for i in range(100)]


def test_each_kind_changes_the_target_in_its_way():
    rows = list(add_noise(PAIRS, 0.5, 17))
    assert [row[0] for row in rows] == [source for source, _ in PAIRS]
    assert Counter(kind for *_, kind in rows) == {"clean": 50, **dict.fromkeys(KINDS, 10)}
    sources, targets = ({pair[side] for pair in PAIRS} for side in (0, 1))
    for (source, target), (_, noisy, kind) in zip(PAIRS, rows, strict=True):
        assert {
            "clean": noisy == target,
            "misaligned": noisy in targets - {target},
            "wrong_language": noisy in sources - {source},
            "copied": noisy == source,
            "truncated": noisy == " ".join(target.split()[:2]),
            "shuffled": sorted(noisy.split()) == sorted(target.split()),
        }[kind], (noisy, kind)
    assert rows == list(add_noise(PAIRS, 0.5, 17)) != list(add_noise(PAIRS, 0.5, 18))


def test_the_pairs_without_noise_have_files_of_their_own(tmp_path):
    sources, targets, kinds = zip(*add_noise(PAIRS, 0.5, 17), strict=True)
    write(tmp_path / "noisy", sources, targets, kinds)
    lines = {path.name: path.read_text("utf-8").splitlines() for path in tmp_path.iterdir()}
    noisy = list(zip(lines["noisy.source"], lines["noisy.target"], strict=True))
    assert noisy == list(zip(sources, targets, strict=True))
    clean = list(zip(lines["noisy-clean.source"], lines["noisy-clean.target"], strict=True))
    assert lines["noisy.kind"] == list(kinds)
    assert clean == [pair for pair, kind in zip(PAIRS, kinds, strict=True) if kind == "clean"]
