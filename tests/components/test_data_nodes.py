"""The components that prepare data, as users construct them."""

import json

import pytest
from tfx.types.channel_utils import as_channel
from tfx.types.standard_artifacts import Examples, ExampleStatistics, Schema

from regard.components import CorpusGen, ExampleValidator, Preprocess, TokenizerTrainer
from regard.components.common.artifact_types import Tokenizer
from regard.core.errors import UserError
from regard.core.files import sha256_file

NO_LISTS = (3, None, {"train"}, {"train": 1}, iter(["train"]))
EXAMPLES, SCHEMA = as_channel([Examples()]), as_channel([Schema()])


def test_corpus_gen_reads_a_section_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    node = CorpusGen({"train": "pairs.tsv", "extra": ["domain"]}, "translation")
    corpus = json.loads(node.exec_properties["corpus"])
    assert corpus["config"]["root"] == str(tmp_path)
    assert [feature["name"] for feature in corpus["features"]] == ["source", "target", "domain"]
    assert node.exec_properties["fingerprint"] == ""  # computed when the node runs


def test_corpus_gen_has_the_features_of_the_model():
    node = CorpusGen({"train": "x.jsonl"}, "pointer", model={"dimensions": 3})
    points = json.loads(node.exec_properties["corpus"])["features"][0]
    assert points["dimensions"] == 3


def test_corpus_gen_checks_the_rules_of_data():
    with pytest.raises(UserError, match=r"data\.eval"):
        CorpusGen({"train": "a.tsv", "eval": "b.tsv"}, "translation")
    for key, value in (("images", "."), ("tags", {"train": ["de"]})):
        with pytest.raises(UserError, match=rf"data\.{key}: does not apply to the task pointer"):
            CorpusGen({"train": "a.jsonl", key: value}, "pointer")


def test_example_validator_has_the_checks_of_the_task():
    def properties(**arguments):
        statistics = as_channel([ExampleStatistics()])
        return ExampleValidator(EXAMPLES, statistics, SCHEMA, **arguments).exec_properties

    span = properties(task="span")
    names = [feature["name"] for feature in json.loads(span["features"])]
    assert names[:3] == ["passage", "question", "answer"]
    pairs = properties(task="translation", extra=["domain"], tokenizer={"normalization": "nfkc"})
    assert json.loads(pairs["features"])[-1]["name"] == "domain"
    assert json.loads(pairs["targets"])["normalization"] == "nfkc"
    assert json.loads(span["checks"]) != json.loads(pairs["checks"])


def test_tokenizer_trainer_has_a_vocabulary_for_each_text():
    node = TokenizerTrainer(EXAMPLES, "translation", {"type": "bpe"}, tags={"names": ["de", "fr"]})
    properties = node.exec_properties
    assert json.loads(properties["config"])["vocab_size"] == 8000
    symbols = json.loads(properties["features"])
    assert symbols["target"] == []
    assert {"<de>", "<fr>"} < set(symbols["source"])
    assert json.loads(properties["start"]) == {}


def test_tokenizer_trainer_changes_the_texts_that_the_trainer_changes():
    def changes(task, noise):
        return json.loads(TokenizerTrainer(EXAMPLES, task, noise=noise).exec_properties["noise"])

    assert changes("translation", None) == {}
    noise = changes("translation", {"upper_case": 0.1})
    assert list(noise) == ["source"]
    assert noise["source"]["upper_case"] == 0.1
    with pytest.raises(UserError, match=r"noise: the shares must add up"):
        changes("translation", {"upper_case": 0.6, "spaces": 0.6})


def test_more_features_are_a_list():
    statistics = as_channel([ExampleStatistics()])
    for wrong in ("domain", 3, None, {"domain"}, [3]):
        with pytest.raises(UserError, match=r"^ExampleValidator: .*\n?.*extra: "):
            ExampleValidator(EXAMPLES, statistics, SCHEMA, "translation", extra=wrong)


def test_tokenizer_trainer_knows_the_content_of_its_word_list(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("abc\n")
    node = TokenizerTrainer(EXAMPLES, "translation", {"type": "word", "word_list": str(path)})
    assert node.exec_properties["word_list_digest"] == sha256_file(path)


def test_tokenizer_trainer_knows_the_content_of_given_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.model"
    path.write_bytes(b"content")
    node = TokenizerTrainer(EXAMPLES, "translation", {"model": "a.model"})
    digest = sha256_file(path)
    expected = {"source": digest, "target": digest}
    assert json.loads(node.exec_properties["model_digests"]) == expected
    assert json.loads(node.exec_properties["config"])["model"] == str(path)
    node = TokenizerTrainer(EXAMPLES, "translation", {"model": "a.model"}, model_digests={})
    assert node.exec_properties["model_digests"] == "{}"
    model = {"source": "a.model", "target": "none"}
    with pytest.raises(UserError, match=r"model\.target: The file .*none cannot be read"):
        TokenizerTrainer(EXAMPLES, "translation", {"model": model})
    with pytest.raises(UserError, match=r"tokenizer\.model: .*target"):
        TokenizerTrainer(EXAMPLES, "translation", {"model": {"source": "a.model"}})


def test_tokenizer_trainer_needs_texts():
    with pytest.raises(UserError, match="has no texts"):
        TokenizerTrainer(EXAMPLES, "pointer")


def test_tokenizer_trainer_has_the_names_of_its_splits():
    def splits(**arguments):
        node = TokenizerTrainer(EXAMPLES, "translation", **arguments)
        return json.loads(node.exec_properties["splits"])

    assert splits() == ["train"]
    assert splits(splits=("learning", "more")) == ["learning", "more"]
    for wrong in ("train", [], [""], [1], ["a", "a"], *NO_LISTS):
        with pytest.raises(UserError, match=r"^TokenizerTrainer: .*\n?.*splits: "):
            splits(splits=wrong)


def test_preprocess_depends_on_what_changes_the_rows():
    def custom(**arguments):
        tokenizer = as_channel([Tokenizer()])
        node = Preprocess(EXAMPLES, SCHEMA, "translation", tokenizer, **arguments)
        return json.loads(node.exec_properties["custom_config"])["settings"]

    plain = {"copies": False, "tag_feature": None, "protect": None, "guided_alignment": None}
    assert custom() == custom(model={"embedding": 8}, training={"max_epochs": 1}) == plain
    copying = {"decoder": {"type": "luong", "pointer_generator": True}}
    assert custom(model=copying)["copies"]
    assert custom(tags={"column": "language", "names": ["de"]})["tag_feature"] == "language"


def test_preprocess_needs_a_tokenizer_only_for_texts():
    with pytest.raises(UserError, match="tokenizer"):
        Preprocess(EXAMPLES, SCHEMA, "translation")
    node = Preprocess(EXAMPLES, SCHEMA, "pointer", splits=["train", "eval", "test"])
    assert set(node.inputs) == {"examples", "schema"}
    assert json.loads(node.exec_properties["splits_config"])["transform"][-1] == "test"
    with pytest.raises(UserError, match="splits"):
        Preprocess(EXAMPLES, SCHEMA, "pointer", splits=["eval"])
    for wrong in ("train", *NO_LISTS):
        with pytest.raises(UserError, match=r"splits: A list .*is expected"):
            Preprocess(EXAMPLES, SCHEMA, "pointer", splits=wrong)
