from components.words import counted


def test_counted():
    assert counted(1, "line") == "1 line"
    assert counted(2000, "line") == "2,000 lines"
    assert counted(0, "entry", "entries") == "0 entries"
