from regard.pipeline.lineage.config_changes import config_changes, flatten


def test_flatten():
    nested = {"a": {"b": 1, "none": {}}, "files": ["x", "y"], "sections": [{"k": 1}, {"k": 2}]}
    assert flatten(nested) == {
        "a.b": 1,
        "a.none": {},
        "files": ["x", "y"],
        "sections.0.k": 1,
        "sections.1.k": 2,
    }


def test_only_keys_that_differ():
    older = {"name": "tiny", "model": {"units": 128, "attention": {"score": "dot"}}}
    newer = {"name": "tiny", "model": {"units": 256, "attention": None}}
    assert config_changes(older, newer) == [
        {"key": "model.units", "a": 128, "b": 256},
        {"key": "model.attention.score", "a": "dot"},
        {"key": "model.attention", "b": None},
    ]
