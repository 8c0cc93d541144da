from regard.components.checks.script import dominant_scripts


def test_dominant_scripts():
    assert dominant_scripts({"Latn": 3, "Cyrl": 3, "Grek": 1}) == ["Cyrl", "Latn"]
    assert dominant_scripts({"Latn": 3}) == ["Latn"]
    assert dominant_scripts({}) == []
