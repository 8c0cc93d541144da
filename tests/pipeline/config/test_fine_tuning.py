"""The configuration that fine-tunes an imported model."""

import pytest

from regard.components.importing.m2m import read_m2m
from regard.components.importing.marian import read_marian
from regard.core.errors import UserError
from regard.pipeline.config import load
from regard.pipeline.config.fine_tuning import write_fine_tuning
from tests.components.importing.huggingface_fixtures import FOLDER


def write_and_load(tmp_path, model):
    (tmp_path / "data").mkdir(exist_ok=True)
    path = tmp_path / "tuned.yaml"
    write_fine_tuning(path, model, "imported@3")
    return load(path)


@pytest.mark.parametrize(
    ("name", "is_shared", "kind"),
    [("marian-opus", False, "unigram"), ("marian-pytorch", False, "bpe")],
)
def test_the_model_is_that_of_the_folder(tmp_path, name, is_shared, kind):
    model = read_marian(FOLDER / name)
    config = write_and_load(tmp_path, model)
    assert config.name == "tuned"
    assert config.model == model.config.model
    assert config.search == model.config.search
    assert (config.tokenizer.shared, config.tokenizer.type) == (is_shared, kind)
    start = config.training.warm_start
    assert (start.model, start.keep_tokenizer) == ("imported@3", True)
    assert config.training.lora.rank == 8


def test_tags_are_a_column(tmp_path):
    model = read_m2m(FOLDER / "m2m", [("en", "de"), ("de", "en")])
    config = write_and_load(tmp_path, model)
    assert config.data.extra == ("tag",)
    assert (config.data.tags.column, config.data.tags.names) == ("tag", ("en-de", "de-en"))
    assert config.model.first_tokens == model.config.model.first_tokens
    assert config.tokenizer.shared


def test_an_existing_file_is_kept(tmp_path):
    path = tmp_path / "tuned.yaml"
    path.write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        write_fine_tuning(path, read_marian(FOLDER / "marian-opus"), "imported@3")
    assert path.read_text() == "mine"
