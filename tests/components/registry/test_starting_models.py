"""The models that a training starts from, exports together with its own, or learns from."""

import json

import pytest

from regard.components.registry.starting_models import find_ensemble, find_teachers
from regard.components.registry.store import Registry
from regard.components.settings.augmentation import AugmentationConfig
from regard.core.errors import UserError
from regard.models.settings.training import TrainingConfig
from regard.serving.contract import CONTRACT, TRAINING
from tests.components.registry.models import write_contract, write_version


@pytest.fixture
def registry(tmp_path):
    return Registry(tmp_path / "registry")


def publish(registry, name, number=1, task="translation", tags=(), is_whole=True):
    """Publish a model; without all of its settings, as an ensemble is."""
    folder = write_version(registry.root.parent, number, name)
    write_contract(folder, task)
    if tags:
        contract = json.loads((folder / CONTRACT).read_text())
        (folder / CONTRACT).write_text(json.dumps({**contract, "tags": list(tags)}))
    if is_whole:
        (folder / TRAINING).write_bytes(b"settings")
    return folder


def teachers(registry, task="translation", row_tags=(), **sections):
    config = AugmentationConfig.model_validate(sections)
    return find_teachers(config, registry, task, row_tags)


def ensemble(registry, *models, task="translation"):
    config = TrainingConfig.model_validate({"ensemble": list(models)})
    return find_ensemble(config, registry, task)


def refused(call, key, *words):
    with pytest.raises(UserError) as caught:
        call()
    assert caught.value.where == key
    for word in words:
        assert word in f"{caught.value.message} {caught.value.remedy}"


def test_no_section_has_no_models(registry):
    assert find_teachers(None, registry, "translation") == {}
    assert teachers(registry) == {}
    assert ensemble(registry) == []


def test_teachers_have_the_keys_of_the_section_and_digests_of_their_content(registry):
    for name in ("f", "r", "t"):
        publish(registry, name)
    publish(registry, "t", 2)
    models = teachers(
        registry,
        filter={"forward": "f@1", "reverse": "r@1"},
        distillation={"teacher": "t@1"},
        back_translation={"model": "t@2"},
    )
    assert {key: model["model"] for key, model in models.items()} == {
        "filter.forward": "f@1",
        "filter.reverse": "r@1",
        "distillation.teacher": "t@1",
        "back_translation.model": "t@2",
    }
    assert models["distillation.teacher"]["path"] == str(registry.path("t", 1))
    first, second = (models[key]["digest"] for key in ("distillation.teacher", "filter.forward"))
    assert first == second  # the same content
    assert first != models["back_translation.model"]["digest"]


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"filter": {"forward": "x@1", "reverse": "t@1"}}, "filter.forward"),
        ({"filter": {"forward": "t@1", "reverse": "x@1"}}, "filter.reverse"),
        ({"distillation": {"teacher": "x@1"}}, "distillation.teacher"),
        ({"back_translation": {"model": "x@1"}}, "back_translation.model"),
    ],
)
def test_each_model_is_checked_at_its_own_key(registry, sections, key):
    where = f"augmentation.{key}"
    publish(registry, "t")

    def call():
        return teachers(registry, **sections)

    refused(call, where, "x")
    folder = publish(registry, "x", task="summarisation")
    refused(call, where, "x@1 is a model for summarisation, not translation")
    (folder / CONTRACT).write_text("{")
    refused(call, where, "x@1 cannot be used")
    (folder / CONTRACT).unlink()
    refused(call, where, "x@1 cannot be used")
    write_contract(folder, "translation")
    assert call()[key]["model"] == "x@1"

    contract = json.loads((folder / CONTRACT).read_text())
    (folder / CONTRACT).write_text(json.dumps({**contract, "tags": ["en-de", "de-en"]}))
    refused(call, where, "x@1 needs a tag", "en-de, de-en", f"{where}_tag")
    section, _, name = key.partition(".")
    sections[section][f"{name}_tag"] = "en-fr"
    refused(call, f"{where}_tag", "no tag 'en-fr'", "en-de, de-en")
    sections[section][f"{name}_tag"] = "de-en"
    assert call()[key]["model"] == "x@1"


def test_a_model_without_tags_must_not_get_one(registry):
    publish(registry, "t")
    section = {"teacher": "t@1", "teacher_tag": "de"}
    key = "augmentation.distillation.teacher_tag"
    refused(lambda: teachers(registry, distillation=section), key, "has no tags", "Remove")


def test_rows_with_tags_need_models_that_have_these(registry):
    publish(registry, "t")
    publish(registry, "many", tags=["de", "fr", "cs"])
    key = "augmentation.distillation.teacher"

    def call(row_tags, **section):
        return teachers(registry, row_tags=row_tags, distillation=section)

    assert call(["de", "cs"], teacher="many@1")
    assert call(["news"], teacher="many@1", teacher_tag="cs")
    refused(lambda: call(["de", "es"], teacher="many@1"), key, "'es' of data.tags", "de, fr, cs")
    refused(lambda: call(["de"], teacher="t@1"), key, "has no tags")
    refused(lambda: call([], teacher="many@1"), key, "needs a tag")
    refused(lambda: call(["de"], teacher="many@1", teacher_tag="x"), f"{key}_tag", "no tag 'x'")


def test_only_a_model_with_its_settings_samples(registry):
    publish(registry, "e", is_whole=False)
    key = "augmentation.back_translation.model"
    assert teachers(registry, back_translation={"model": "e@1"})
    assert teachers(registry, distillation={"teacher": "e@1"})
    sampling = {"model": "e@1", "search": "sampling"}
    refused(lambda: teachers(registry, back_translation=sampling), key, "cannot sample")
    publish(registry, "t")
    assert teachers(registry, back_translation={**sampling, "model": "t@1"})


def test_the_members_of_an_ensemble_keep_their_order(registry):
    for number in (1, 2):
        publish(registry, "m", number)
    members = ensemble(registry, "m@2", "m@1")
    assert [member["model"] for member in members] == ["m@2", "m@1"]
    assert [member["path"] for member in members] == [str(registry.path("m", n)) for n in (2, 1)]
    assert members[0]["digest"] != members[1]["digest"]


def test_a_member_must_exist_and_have_the_task_and_its_settings(registry):
    key = "training.ensemble"
    publish(registry, "m")
    refused(lambda: ensemble(registry, "m@1", "x@1"), key, "x")
    refused(lambda: ensemble(registry, "m@7"), key, "7")
    publish(registry, "short", task="summarisation")
    refused(lambda: ensemble(registry, "m@1", "short@1"), key, "short@1 is a model for summaris")
    publish(registry, "e", is_whole=False)
    refused(lambda: ensemble(registry, "m@1", "e@1"), key, "e@1 is an ensemble")
    publish(registry, "broken")
    (registry.path("broken", 1) / CONTRACT).write_text("[]")
    refused(lambda: ensemble(registry, "broken@1"), key, "broken@1 cannot be used")
