"""Scores, alignments, metrics and tasks of another package."""

import numpy as np
import pytest

from regard.core.errors import UserError
from regard.core.kinds import NUMBER, TEXT
from regard.core.plugins import plugin_modules
from regard.models import metrics, tasks
from regard.models.attention import ALIGNMENTS, SCORES, Attention
from regard.models.settings.attention import AttentionConfig
from tests import plugins
from tests.tolerances import assert_close


def test_own_choices_need_no_entry_points(monkeypatch):
    monkeypatch.setattr("regard.core.plugins.find_points", None)  # fails whoever reads them
    assert AttentionConfig.model_validate({"score": {"type": "dot"}}).score.type == "dot"
    assert SCORES["dot"].__name__ == "DotScore"
    assert metrics.get_metric("bleu", TEXT).label == "BLEU"
    assert tasks.describe("pointer").name == "pointer"


def test_a_score_of_another_package(install_plugin):
    install_plugin()
    section = AttentionConfig.model_validate({"score": {"type": "bilinear", "rank": 3}})
    assert section.model_dump()["score"] == {"type": "bilinear", "rank": 3}
    again = AttentionConfig.model_validate_json(section.to_json())
    assert again == section
    assert {"bilinear", "dot"} <= set(SCORES)
    assert "sharp" in set(ALIGNMENTS)

    layer = Attention(score={"type": "bilinear", "rank": 3}, alignment="sharp", name="attention")
    random = np.random.default_rng(3)
    query, memory = (random.normal(size=(2, n, 4)).astype("float32") for n in (3, 5))
    context, weights = layer(query, memory)
    a, b = (np.asarray(dense.kernel) for dense in (layer.score.query, layer.score.keys))
    scores = 2.0 * (query @ a) @ np.swapaxes(memory @ b, 1, 2)
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(np.asarray(weights), expected, rtol=1e-5)
    assert_close(np.asarray(context), expected @ memory)


def test_a_task_of_another_package(install_plugin):
    install_plugin()
    assert tasks.describe("dialogue").summary == "answer a speaker"
    assert tasks.package("dialogue") == "regard_bilinear"
    assert type(tasks.get_network("dialogue")).__name__ == "TextNetwork"
    assert tasks.package("translation") == "regard.models.tasks.translation"


def test_a_metric_of_another_package(install_plugin):
    install_plugin()
    rows = metrics.Rows(["a b", "c"], [["a c"], ["d"]])
    assert metrics.compute(["first_word"], rows)[0].value == 0.5
    assert "first_word" in metrics.metrics_for(TEXT)
    assert "first_word" not in metrics.metrics_for(NUMBER)


def test_modules_of_plugins_are_those_in_the_settings(install_plugin):
    install_plugin()
    assert plugin_modules('{"type": "bilinear"}') == ["regard_bilinear.settings"]
    assert plugin_modules('{"label": "bilinear2"}') == []


BROKEN = {
    "regard_bilinear.missing:Score": "ModuleNotFoundError",
    "regard_bilinear.settings:Missing": "AttributeError",
    "regard_bilinear.settings:DESCRIPTION": "it is no Section",
}


@pytest.mark.parametrize("value", BROKEN)
def test_a_broken_plugin_names_the_package_and_the_entry_point(install_plugin, value):
    install_plugin(entries={"regard.scores": {"odd": value}})
    with pytest.raises(UserError) as caught:
        AttentionConfig.model_validate({"score": {"type": "odd"}})
    for part in ("'odd'", "regard_bilinear", "regard.scores", value, BROKEN[value]):
        assert part in caught.value.message
    assert (caught.value.where, caught.value.code) == ("regard_bilinear", "environment")


def test_a_class_that_cannot_be_imported_is_named_too(install_plugin):
    files = {**plugins.FILES, "layers.py": "import no_such_module"}
    install_plugin(files=files)
    AttentionConfig.model_validate({"score": {"type": "bilinear"}})  # needs no class
    with pytest.raises(UserError, match=r"package regard_bilinear .*no_such_module"):
        SCORES["bilinear"]


@pytest.mark.parametrize("name", ["dot", "scaled_dot"])
def test_a_name_that_is_taken_is_refused(install_plugin, name):
    install_plugin(
        entries={"regard.scores": {name: "regard_bilinear.settings:BilinearScoreConfig"}}
    )
    with pytest.raises(UserError, match=f"'{name}' of the package regard_bilinear .*taken"):
        "other" in SCORES  # noqa: B015
    assert SCORES["dot"].__name__ == "DotScore"


def test_two_packages_with_one_name_are_refused(install_plugin, tmp_path, monkeypatch):
    install_plugin()
    folder = plugins.install(
        tmp_path / "more", "other_package", {"regard.scores": {"bilinear": "other_package:X"}}
    )
    monkeypatch.syspath_prepend(folder)
    with pytest.raises(UserError, match="already taken"):
        SCORES["bilinear"]
