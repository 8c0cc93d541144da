"""Which versions a file of models asks for."""

from __future__ import annotations

import pytest

from components.errors import UserError
from components.registry.holding import wanted_by
from tests.components.registry.models import push_models

CONFIG = 'config {{ name: "{}" base_path: "{}" model_platform: "tensorflow" {} }}'
SPECIFIC = "model_version_policy { specific { versions: 2 versions: 7 } }"
LABEL = 'version_labels { key: "stable" value: 1 }'


@pytest.fixture
def wanted(tmp_path):
    registry = push_models(tmp_path / "registry", 3)

    def wanted(*models, name="m"):
        file = tmp_path / "models.config"
        file.write_text(f"model_config_list {{ {' '.join(models)} }}")
        found = wanted_by(file, registry, name)
        assert set(found.values()) <= {"in models.config"}
        return set(found)

    return wanted


def test_versions_by_policy_and_by_label(wanted):
    assert wanted(CONFIG.format("m", "/models/m", SPECIFIC + LABEL)) == {1, 2}
    assert wanted(CONFIG.format("m", "/models/m", "")) == {3}
    assert wanted(CONFIG.format("m", "/x", "model_version_policy { all {} }")) == {1, 2, 3}


def test_a_model_is_known_by_its_name_or_its_folder(wanted):
    assert wanted(CONFIG.format("other", "/models/m", SPECIFIC)) == {2}
    assert wanted(CONFIG.format("other", "/models/other", SPECIFIC)) == set()


def test_a_file_that_cannot_be_read_is_refused(wanted):
    with pytest.raises(UserError) as caught:
        wanted("config {")
    assert "--model-config-file" in caught.value.remedy
