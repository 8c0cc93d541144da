import pytest

from regard.components.checks.normalization import is_changed, normalize_target


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wait…", "Wait..."),
        ("100\xa0km", "100 km"),
        ("好，对！", "好,对!"),
        ("Ａ ﬁle", "A file"),
        ("e\u0301", "é"),
        ("می‌ خواهم", "می خواهم"),
    ],
)
def test_what_the_default_normalization_changes(text, expected):
    assert is_changed(text, "nmt_nfkc")
    assert normalize_target(text, "nmt_nfkc") == expected
    assert not is_changed(text, "identity")


@pytest.mark.parametrize("text", ["", "a  b ", "Tiếng Việt", "می‌خواهم", "नहीं", "好。", "👨‍👩‍👧"])
def test_what_it_keeps(text):
    assert not is_changed(text, "nmt_nfkc")
    assert not is_changed(text, "nmt_nfkc_cf")
