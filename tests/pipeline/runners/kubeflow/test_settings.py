"""Loading a configuration for a cluster, and its warnings."""

import pytest

from regard.pipeline.runners.kubeflow.settings import (
    cluster_warnings,
    load_for_cluster,
    run_parameters,
)
from tests.pipeline.runners.kubeflow.pipelines import CONFIG, KUBEFLOW, write_config


@pytest.fixture(autouse=True)
def local_home(monkeypatch):
    monkeypatch.setenv("REGARD_HOME", "/home/me/workspace")
    monkeypatch.delenv("REGARD_DATA", raising=False)


def test_home_is_the_folder_in_the_containers(tmp_path):
    config = load_for_cluster(write_config(tmp_path))
    assert config.data.root == "/regard/data"
    assert run_parameters(config) == {"max_epochs": 20, "seed": 17}
    assert list(cluster_warnings(config)) == []


def test_given_values(tmp_path):
    options = ["training.max_epochs=3", "data.root='${REGARD_HOME}/other'"]
    config = load_for_cluster(write_config(tmp_path), options)
    assert config.data.root == "/regard/other"
    assert run_parameters(config) == {"max_epochs": 3, "seed": 17}


def test_regard_data_is_resolved_on_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", "/mnt/corpora")
    config = CONFIG.replace("${REGARD_HOME}/data", "${REGARD_DATA}/multi30k")
    config = load_for_cluster(write_config(tmp_path, KUBEFLOW, config))
    assert config.data.root == "/mnt/corpora/multi30k"
    assert "data.root: /mnt/corpora/multi30k is on no volume" in next(cluster_warnings(config))


def test_data_files_outside_the_volumes_are_reported(tmp_path):
    config = CONFIG.replace('"train-*.tsv"', "[a.tsv, /data/b.tsv, ~/c.tsv, /regard/d.tsv]")
    warnings = list(cluster_warnings(load_for_cluster(write_config(tmp_path, KUBEFLOW, config))))
    assert [warning.partition(" is on")[0] for warning in warnings] == [
        "data.train: /data/b.tsv",
        "data.train: ~/c.tsv",
    ]


def test_vectors_outside_the_volumes_are_reported(tmp_path):
    more = "model: {pretrained: {source: vectors.txt}}\n"
    config = CONFIG.replace("{type: char, ", "{type: word, word_list: /regard/words.txt, ") + more
    (warning,) = cluster_warnings(load_for_cluster(write_config(tmp_path, KUBEFLOW, config)))
    assert f"model.pretrained.source: {tmp_path}/vectors.txt is on no volume" in warning


def test_tokenizers_outside_the_volumes_are_reported(tmp_path):
    files = "{model: {source: /regard/a.model, target: b.model}}"
    config = CONFIG.replace("{type: char, vocab_size: 20, vocab_limit: soft}", files)
    (warning,) = cluster_warnings(load_for_cluster(write_config(tmp_path, KUBEFLOW, config)))
    assert f"tokenizer.model.target: {tmp_path}/b.model is on no volume" in warning


@pytest.mark.parametrize(("model", "is_reported"), [("/m/a", True), ("tiny@1", False)])
def test_a_start_outside_the_volumes_is_reported(tmp_path, model, is_reported):
    more = f"{KUBEFLOW}training: {{warm_start: {{model: {model}}}}}\n"
    warnings = list(cluster_warnings(load_for_cluster(write_config(tmp_path, more))))
    assert warnings == is_reported * [
        "training.warm_start.model: /m/a is on no volume of kubeflow.volumes. The image must "
        "contain it."
    ]
