"""What a configuration says about its cluster."""

import pytest

from pipeline.kubeflow.settings import load_for_cluster, notes, run_parameters
from tests.pipeline.kubeflow.pipelines import CONFIG, KUBEFLOW, write_config


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    monkeypatch.setenv("REGARD_HOME", "/home/me/workspace")
    monkeypatch.delenv("REGARD_DATA", raising=False)


def test_home_is_that_of_the_containers(tmp_path):
    config = load_for_cluster(write_config(tmp_path))
    assert config.data.root == "/regard/data"
    assert run_parameters(config) == {"max_epochs": 20, "seed": 17}
    assert list(notes(config)) == []


def test_the_data_s_own_variable_counts_here_too(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", "/mnt/corpora")
    config = CONFIG.replace("${REGARD_HOME}/data", "${REGARD_DATA}/multi30k")
    found = load_for_cluster(write_config(tmp_path, KUBEFLOW, config))
    assert found.data.root == "/mnt/corpora/multi30k"
    assert "data.root: /mnt/corpora/multi30k is on no volume" in next(iter(notes(found)))


def test_files_of_data_are_looked_for_too(tmp_path):
    config = CONFIG.replace('"train-*.tsv"', "[a.tsv, /data/b.tsv, ~/c.tsv, /regard/d.tsv]")
    found = list(notes(load_for_cluster(write_config(tmp_path, KUBEFLOW, config))))
    assert [note.partition(" is on")[0] for note in found] == [
        "data.train: /data/b.tsv",
        "data.train: ~/c.tsv",
    ]


def test_files_of_words_and_vectors_are_looked_for_on_the_volumes(tmp_path):
    more = "model: {pretrained: {source: vectors.txt}}\n"
    config = CONFIG.replace("{type: char, ", "{type: word, words: /regard/words.txt, ") + more
    found = list(notes(load_for_cluster(write_config(tmp_path, KUBEFLOW, config))))
    assert len(found) == 1
    assert found[0].startswith(f"model.pretrained.source: {tmp_path}/vectors.txt is on no volume")
