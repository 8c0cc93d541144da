"""The section ``pipeline`` without imports: names, order, and what waits for what."""

import pytest

from regard.core.errors import UserError
from regard.pipeline.compare.matrix import read_comparison
from regard.pipeline.config import config_from_values, load
from regard.pipeline.config.config import NODES, TUNER
from regard.pipeline.workspace import Workspace

CONFIG = """
name: tiny
data: {train: train.tsv}
pipeline:
  nodes:
"""


@pytest.fixture
def read(tmp_path):
    """Load a configuration with nodes, whose modules exist."""
    (tmp_path / "some_nodes.py").write_text("raise RuntimeError('imported')\n")

    def read(*nodes, more=""):
        path = tmp_path / "tiny.yaml"
        lines = "".join(f"  - {{component: some_nodes:{node}}}\n" for node in nodes)
        path.write_text(CONFIG + lines + more)
        return load(path, home=tmp_path)

    return read


def test_own_nodes_run_between_those_that_they_are_connected_with(read):
    config = read(
        "A, name: Last, after: B, before: Pusher",
        "B, inputs: {model: Trainer.model}",
        "A, inputs: {examples: CorpusGen.examples}, before: SchemaGen",
    )
    nodes = config.nodes
    assert tuple(name for name in nodes if name in NODES) == NODES == config.regard_nodes
    order = ["CorpusGen", "A", "SchemaGen", "Trainer", "B", "Last", "Pusher"]
    assert [name for name in nodes if name in order] == order
    assert config.search_nodes == (*NODES[: NODES.index("Trainer")], TUNER)


def test_the_folder_of_the_file_has_the_modules(read, tmp_path):
    config = read("A")
    assert config.pipeline.folder == str(tmp_path)
    assert config_from_values(config.recorded()).pipeline == config.pipeline
    assert config.own_modules == ["some_nodes"]
    (tmp_path / "train.tsv").touch()
    path = tmp_path / "plain.yaml"
    path.write_text("name: tiny\ndata: {train: train.tsv}\n")
    assert load(path).pipeline.folder is None  # so that a moved file is the same configuration


@pytest.mark.parametrize(
    ("nodes", "key", "message"),
    [
        (["A, after: Traner"], "0.after", "Did you mean Trainer?"),
        (["A, before: A"], "0.before", "'A' is not another node"),
        (["A, inputs: {x: Nope.y}"], "0.inputs.x", "'Nope' is not another node"),
        (["A, inputs: {x: Trainer}"], "0.inputs.x", "'Trainer' is not NODE.OUTPUT"),
        (["A", "A"], "1.component", "there already is a node 'A'"),
        (["A", "B, name: a"], "1.name", "there already is a node 'a'"),
        (["Tuner"], "0.component", "there already is a node 'Tuner'"),
        (["A, name: augmenter"], "0.name", "there already is a node 'augmenter'"),
        (["_A"], "0.component", "'_A' cannot be the name"),
        (["Größe"], "0.component", "'Größe' cannot be the name"),
        (["A, name: Pusher"], "0.name", "there already is a node 'Pusher'"),
        (["A, after: B", "B, after: A"], "0", "wait for each other"),
        (["A, after: Trainer, before: Preprocess"], "0", "Preprocess → Trainer"),
        (["A, nam: B"], "0.nam", "Did you mean name?"),
        (["A.B"], "0.component", "is not possible"),
    ],
)
def test_problems_have_their_key_and_line(read, nodes, key, message):
    with pytest.raises(UserError) as error:
        read(*nodes)
    (line,) = (line for line in str(error.value).splitlines() if "tiny.yaml:" in line)
    number = 6 + int(key[0])
    assert f"tiny.yaml:{number}: pipeline.nodes.{key}: " in line
    assert message in line


def test_parameters_cannot_refer_to_variables(read, monkeypatch, tmp_path):
    monkeypatch.setenv("TOKEN", "s3cret-value")
    node = "A, inputs: {parameters: CorpusGen.examples}, parameters: "
    with pytest.raises(UserError) as error:
        read(node + "{url: 'x/${TOKEN}', more: {list: ['${TOKEN}']}}")
    text = str(error.value)
    for key in ("url", "more.list.0"):
        assert f"tiny.yaml:6: pipeline.nodes.0.parameters.{key}: cannot refer to ${{TOKEN}}" in text
    assert 'os.environ["TOKEN"]' in text
    assert "s3cret" not in text
    config = read(node + "{a: '$${TOKEN}', b: '${REGARD_HOME}'}")
    assert config.pipeline.nodes[0].parameters == {"a": "${TOKEN}", "b": str(tmp_path)}
    text = "name: m\nbase: {data: {train: t.tsv}}\nmodels: {a: , b: {pipeline: {nodes: ["
    text += "{component: some_nodes:A, parameters: {token: '${TOKEN}'}}]}}}\n"
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(
        UserError, match=r"models\.b\.pipeline\.nodes\.0\.parameters\.token: cannot"
    ):
        read_comparison([tmp_path / "m.yaml"], Workspace(tmp_path))


def test_a_missing_module_is_an_error_of_its_key(read):
    with pytest.raises(UserError) as error:
        read("A", more="  extra: nowhere.here:extra\ntraining: {run_fn: not_here:run_fn}\n")
    assert "tiny.yaml:7: pipeline.extra: there is no module nowhere.here" in str(error.value)
    assert "tiny.yaml:8: training.run_fn: there is no module not_here" in str(error.value)


def test_a_search_has_no_run_fn_of_ones_own(read, tmp_path):
    tune = "tune: {search_space: {training.learning_rate: {log: [0.001, 0.1]}}}\n"
    with pytest.raises(UserError, match=r"training\.run_fn: `regard tune` trains with"):
        read("A", more=f"{tune}training: {{run_fn: some_nodes:run_fn}}\n")
