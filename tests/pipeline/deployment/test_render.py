"""Rendering for models of a registry: which, for which server, and into which folder."""

import json
import shutil

import pytest

from regard.core.errors import UserError
from regard.pipeline.deployment import render
from tests import fake_models, fake_tasks


def test_the_newest_or_a_given_version(registry):
    newest = render.render("reverser", registry, "compose")[0]["models.config"]
    pinned = render.render("reverser@1", registry, "compose")[0]["models.config"]
    assert "latest { num_versions: 1 }" in newest
    assert "specific { versions: 1 }" in pinned
    assert "latest" not in pinned


def test_the_registry_of_each_target(registry):
    files, requirements = render.render("reverser", registry, "compose")
    assert json.dumps(str(registry)) in files["compose.yaml"]
    assert not requirements
    _, requirements = render.render("reverser", registry, "kubernetes", namespace="nlp")
    assert requirements == [
        "needs  the claim 'regard-registry' in the namespace 'nlp', with the versions in"
        " reverser/, readable by several pods (ReadOnlyMany or ReadWriteMany) and by any user",
        "needs  a metrics server, for the autoscaler",
    ]
    _, requirements = render.render("reverser", registry, "kserve", storage="pvc://claim/a/b/")
    assert "in a/b/reverser/, readable" in requirements[0]


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("revrser", "There is no model 'revrser'"),
        ("reverser@7", "Model 'reverser' has no version '7'"),
        ("..", "'..' is not the name of a model."),
        ("", "'' is not the name of a model."),
        ("/a/folder", "'/a/folder' is not the name of a model."),
    ],
)
def test_unknown_models(registry, model, complaint):
    with pytest.raises(UserError) as error:
        render.render(model, registry, "compose")
    assert error.value.message == complaint
    assert error.value.remedy


def test_a_server_that_lacks_an_operation(registry):
    message = "TensorFlow Serving 2.6.2 cannot run the model: it lacks the operations"
    with pytest.raises(UserError, match=message) as error:
        render.render("reverser", registry, "compose", image="tensorflow/serving:2.6.2")
    assert error.value.remedy == "Use a newer image."


def test_an_unknown_server_version(registry):
    with pytest.raises(UserError, match=r"Serving '2.99' are not known") as error:
        render.render("reverser", registry, "compose", image="tensorflow/serving:2.99")
    assert error.value.where == "--image"


def test_operations_checked_at_publication_are_not_checked_again(registry, monkeypatch, tmp_path):
    shutil.copytree(registry / "reverser" / "1", tmp_path / "checked" / "1")
    record = {"config": {"serving": {"tf_serving_versions": ["2.19"]}}}
    (tmp_path / "checked" / "1" / "regard.json").write_text(json.dumps(record))
    monkeypatch.setattr(render.supported_ops, "used_ops", lambda path: {"NoSuchOperation": "node"})
    assert render.render("checked", tmp_path, "compose")[0]
    with pytest.raises(UserError, match="NoSuchOperation"):
        render.render("checked", tmp_path, "compose", image="tensorflow/serving:2.20.0")


def test_own_files_are_replaced(tmp_path):
    render.write({"a.yaml": "a: 1\n", "b.yaml": "b: 1\n"}, tmp_path / "new")
    (tmp_path / "new" / "mine.yaml").write_text("c: 3\n")
    render.write({"a.yaml": "a: 2\n", "b.yaml": "b: 1\n"}, tmp_path / "new")
    assert (tmp_path / "new" / "a.yaml").read_text().startswith("a: 2\n# ")
    assert (tmp_path / "new" / "mine.yaml").read_text() == "c: 3\n"


@pytest.mark.parametrize("change", [("b: 1", "b: 2"), ("#", "# x"), ("b: 1\n", "b: 1\n\n")])
def test_modified_files_are_kept(tmp_path, change):
    files = {"a.yaml": "a: 1\n", "b.yaml": "b: 1\n", "c.yaml": "c: 1\n"}
    render.write(files, tmp_path)
    own = (tmp_path / "a.yaml").read_text()
    modified = (tmp_path / "b.yaml").read_text().replace(*change)
    (tmp_path / "b.yaml").write_text(modified)
    (tmp_path / "c.yaml").write_text("")
    with pytest.raises(UserError, match="has been modified") as error:
        render.write(dict.fromkeys(files, "x: 9\n"), tmp_path)
    assert "--force" in error.value.remedy
    assert error.value.where == f"{tmp_path / 'b.yaml'}, {tmp_path / 'c.yaml'}"
    assert (tmp_path / "a.yaml").read_text() == own
    assert (tmp_path / "b.yaml").read_text() == modified
    render.write(files, tmp_path, force=True)
    assert (tmp_path / "b.yaml").read_text().startswith("b: 1\n# ")


def test_kserve_does_not_batch_models_of_points(registry, tmp_path):
    """It cannot pad."""
    fake_models.save(fake_tasks.Sorter(), tmp_path / "sorter" / "1")
    for root, name, is_batched in ((tmp_path, "sorter", False), (registry, "reverser", True)):
        service = render.render(name, root, "kserve")[0]["inference_service.yaml"]
        assert ("--enable_batching=true" in service) is is_batched
