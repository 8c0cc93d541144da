import json
import os
import re
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sacrebleu.metrics import BLEU, CHRF

from regard.components.common import prediction_table
from regard.components.registry.records import VersionRecord
from regard.core.errors import UserError
from regard.models import tasks
from regard.pipeline.cli.evaluate import evaluate as command
from regard.pipeline.prediction import evaluate as module
from regard.pipeline.prediction.evaluate import REPORT, _evaluation_config, evaluate
from regard.pipeline.prediction.models import open_model
from regard.serving.contract import CONTRACT
from tests import fake_models, fake_tasks

SOURCES = ["a small dog runs", "two cats sleep here", "the old house", "a dog", "green trees grow"]
# The model reverses a text and writes it in capitals.
REFERENCES = [text[::-1].upper() for text in SOURCES]
REFERENCES[1] = REFERENCES[1].replace("S", "Z")
REFERENCES[2] = "SOMETHING ELSE IS THERE"


@pytest.fixture(scope="module")
def models(tmp_path_factory, save_model):
    root = tmp_path_factory.mktemp("models")
    save_model(root / "reverser", fake_models.Reverser)
    save_model(root / "namer", fake_tasks.Namer)
    save_model(root / "matcher", fake_tasks.Matcher)
    return root


@pytest.fixture
def sides(tmp_path):
    for name, lines in (("a.en", SOURCES), ("a.de", REFERENCES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {"source": str(tmp_path / "a.en"), "target": str(tmp_path / "a.de")}


def _evaluate(*names, files, **options):
    return evaluate([str(name) for name in names], names[0].parent, files, **options)


def test_metrics_are_those_of_sacrebleu(models, sides, tmp_path):
    names = ["bleu", "chrf", "exact_match"]
    result = _evaluate(models / "reverser", files=sides, metrics=names, out=tmp_path / "out")
    hypotheses = [text[::-1].upper() for text in SOURCES]
    assert result.rows == 5
    assert result.metrics["bleu"].value == BLEU().corpus_score(hypotheses, [REFERENCES]).score
    assert result.metrics["chrf"].value == CHRF().corpus_score(hypotheses, [REFERENCES]).score
    assert result.metrics["exact_match"].value == 0.6
    assert result.metrics["bleu"].interval.samples == 1000
    assert (tmp_path / "out" / "hypotheses.txt").read_text().splitlines() == hypotheses
    assert (tmp_path / "out" / "references.txt").read_text().splitlines() == REFERENCES
    page = (tmp_path / "out" / REPORT).read_text(encoding="utf-8")
    assert "BLEU" in page
    assert "SOMETHING ELSE" in page


def tagged(path, models):
    """The reverser as a model with tags; its outputs show the source that it reads."""
    shutil.copytree(models / "reverser", path)
    contract = json.loads((path / CONTRACT).read_text())
    (path / CONTRACT).write_text(json.dumps({**contract, "tags": ["de", "fr"]}))
    return path


def test_a_tag_for_files_without_tags(models, sides, tmp_path):
    model = tagged(tmp_path / "tagged", models)
    _evaluate(model, files=sides, metrics=["exact_match"], tag="fr", out=tmp_path / "out")
    lines = (tmp_path / "out" / "hypotheses.txt").read_text().splitlines()
    assert lines == [f"<fr> {text}"[::-1].upper() for text in SOURCES]
    for tag, message in ((None, "The text has no tag"), ("es", "The model has no tag 'es'")):
        with pytest.raises(UserError, match=message):
            _evaluate(model, files=sides, tag=tag)
    with pytest.raises(UserError, match="it has no tags"):
        _evaluate(models / "reverser", files=sides, tag="fr")


def test_only_the_model_with_tags_reads_the_tag(models, sides, tmp_path):
    model = tagged(tmp_path / "tagged", models)
    result = _evaluate(model, models / "reverser", files=sides, metrics=["exact_match"], tag="fr")
    assert result.metrics["exact_match"].value == 0
    assert result.production.metrics["exact_match"].value == 0.6


def write_rows(path, rows, sign="\t", has_header=True):
    """Write rows in the format of the suffix."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    else:
        lines = [sign.join(row.values()) for row in rows]
        header = [sign.join(rows[0])] if has_header else []
        path.write_text("\n".join([*header, *lines]) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "sign"), [("tsv", "\t"), ("csv", ";"), ("jsonl", ""), ("parquet", "")]
)
def test_columns_of_each_format(models, tmp_path, kind, sign):
    path = tmp_path / f"rows.{kind}"
    write_rows(path, [{"fr": t, "en": s} for s, t in zip(SOURCES, REFERENCES, strict=True)], sign)
    result = _evaluate(
        models / "reverser",
        files=[str(path)],
        metrics=["exact_match"],
        columns={"source": "en", "target": "fr"},
    )
    assert (result.rows, result.metrics["exact_match"].value) == (5, 0.6)


def test_a_recorded_command_runs_only_if_its_metric_is_named(models, sides, monkeypatch, recorded):
    script = "import sys\nfor line in sys.stdin: print(len(line.split(chr(9))[1]))"
    external = {"length": {"command": ["${PY}", "-c", script], "higher_is_better": False}}
    recorded(evaluation={"metrics": ["length"], "external": external})
    monkeypatch.setenv("PY", sys.executable)
    result = _evaluate(models / "reverser", files=sides, metrics=["length", "bleu"])
    assert result.metrics["length"].value == sum(map(len, SOURCES)) / 5
    assert not result.metrics["length"].higher_is_better
    assert result.metrics["length"].interval.samples == 1000
    assert "length" not in _evaluate(models / "reverser", files=sides).metrics


def test_two_models_are_compared(models, sides):
    result = _evaluate(models / "reverser", models / "reverser", files=sides, metrics=["bleu"])
    assert result.production.metrics == result.metrics
    assert result.production.comparison.p_value == 1.0


def test_a_page_about_the_differences(models, sides, tmp_path, save_model):
    class Shouter(fake_models.Reverser):
        """Adds a sign to every output."""

        def answer(self, source):
            outputs = super().answer(source)
            return {**outputs, "translation": outputs["translation"] + "!"}

    save_model(tmp_path / "shouter", Shouter)
    file = tmp_path / "differences.html"
    options = {"files": sides, "metrics": ["chrf"], "explore": file}
    result = _evaluate(models / "reverser", models / "reverser", **options)
    assert result.rows == 5
    assert "differ on 0 of 5 rows" in file.read_text(encoding="utf-8")
    _evaluate(models / "reverser", tmp_path / "shouter", **options, out=tmp_path / "out")
    text = file.read_text(encoding="utf-8")
    assert "SNUR GOD LLAMS A" in text
    assert f"{models.name}/reverser compared with {tmp_path.name}/shouter" in text
    assert (tmp_path / "out" / "report.differences.html").read_text(encoding="utf-8") == text


def test_a_folder_may_be_used_again(models, sides, tmp_path, save_model):
    class Other(fake_models.Reverser):
        def answer(self, source):
            return {**super().answer(source), "translation": source}

    save_model(tmp_path / "other", Other)
    options = {"files": sides, "metrics": ["chrf"], "out": tmp_path / "out"}
    _evaluate(models / "reverser", tmp_path / "other", **options)
    names = {path.name for path in options["out"].iterdir()}
    _evaluate(models / "reverser", **options)
    assert names - {path.name for path in options["out"].iterdir()} == {
        "production.parquet",
        "report.differences.html",
        "row_differences.json",
    }
    assert "differences.html" not in (options["out"] / REPORT).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ["", "missing/differences.html"])
def test_the_page_is_checked_before_the_models_run(models, sides, tmp_path, path):
    names = [models / "reverser"] * (2 if path else 1)
    file = tmp_path / (path or "differences.html")
    with pytest.raises(UserError) as error:
        _evaluate(*names, files=sides, explore=file, on_progress=pytest.fail)
    assert error.value.where.startswith("--explore")


def test_numbers_and_images(models, tmp_path):
    rated = tmp_path / "rated.tsv"
    rated.write_text("a b\ta b\t5\na b\tc d\t1\na\ta c\t3\n", encoding="utf-8")
    result = _evaluate(models / "matcher", files=[str(rated)], metrics=["pearson"])
    assert result.rows == 3
    assert result.metrics["pearson"].value > 0.5
    (tmp_path / "a.png").write_bytes(fake_tasks.png(3, 4))
    captions = tmp_path / "captions.tsv"
    captions.write_text("a.png\t3 by 4\n", encoding="utf-8")
    result = _evaluate(models / "namer", files=[str(captions)], metrics=["exact_match"])
    assert result.metrics["exact_match"].value == 1.0


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"metrics": ["blue"]}, "Unknown metric 'blue'. Did you mean bleu"),
        ({}, {"metrics": ["pearson"]}, "pearson scores outputs of kind number"),
        ({"source": "none.en"}, {}, "--source: No such file"),
        ({"target": os.devnull}, {}, "--target: /dev/null cannot be used"),
    ],
)
def test_errors_name_the_option(models, sides, change, options, message):
    with pytest.raises(UserError) as caught:
        _evaluate(models / "reverser", files={**sides, **change}, **options)
    text = f"{caught.value.where}: {caught.value.message}"
    assert re.search(re.escape(message), text)


def test_models_of_different_tasks_are_refused(models, sides):
    with pytest.raises(UserError, match="different tasks: translation and similarity"):
        _evaluate(models / "reverser", models / "matcher", files=sides)


def test_the_command_prints_a_table_and_json(models, sides, capfd):
    model, paths = str(models / "reverser"), {k: os.path.relpath(v) for k, v in sides.items()}
    options = {name: Path(path) for name, path in paths.items()}
    command([model], metrics="bleu,chrf", **options)
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "5 rows"
    assert lines[2].startswith("BLEU ")
    assert lines[3].startswith("chrF ")
    command([model, model], metrics="bleu", as_json=True, **options)
    content = json.loads(capfd.readouterr().out)
    assert content["models"] == [model, model]
    assert content["metrics"]["bleu"]["value"] == content["production"]["metrics"]["bleu"]["value"]


def test_changed_inputs(models, sides, recorded, tmp_path, capfd):
    recorded(
        evaluation={
            "robustness": {
                "kinds": ["upper_case", "missing_punctuation", "typing_errors"],
                "rate": 1.0,
                "max_loss": {"upper_case": 0.0},
                "metric": "chrf",
            }
        },
        tokenizer={"user_defined_symbols": ["sleep"]},
    )
    options = {"files": sides, "metrics": ["exact_match"]}
    result = _evaluate(models / "reverser", **options, robustness=True, out=tmp_path / "out")
    upper, punctuation, typing = result.robustness
    # The model writes capitals anyway, and the lines have no punctuation.
    assert (upper.rows, upper.losses) == (5, {"exact_match": 0.0})
    assert (punctuation.rows, punctuation.losses) == (0, {"exact_match": 0.0})
    assert (typing.rows, typing.scores) == (5, {"exact_match": 0.0})
    assert typing.limit is None
    assert typing.losses["exact_match"] == result.metrics["exact_match"].value == 0.6
    table = prediction_table.read(tmp_path / "out/robustness-typing_errors.parquet")
    assert table["source"][1].split()[2] == "sleep"
    assert "Robustness" in (tmp_path / "out" / REPORT).read_text(encoding="utf-8")
    assert _evaluate(models / "reverser", **options).robustness == []

    command(
        [str(models / "reverser")],
        metrics="bleu",
        robustness=True,
        **{name: Path(path) for name, path in sides.items()},
    )
    lines = capfd.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines[-3:]] == [
        "upper case",
        "missing punctuation",
        "typing errors",
    ]
    assert "5" in lines[-1].split()


def test_the_tag_of_a_changed_text_stays(models, sides, tmp_path):
    model = tagged(tmp_path / "tagged", models)
    out = tmp_path / "out"
    _evaluate(model, files=sides, metrics=["chrf"], tag="fr", robustness=True, out=out)
    table = prediction_table.read(out / "robustness-upper_case.parquet")
    assert table["hypothesis"] == [f"<fr> {text}"[::-1].upper() for text in SOURCES]


def test_models_without_texts_have_no_changed_inputs(models, tmp_path):
    (tmp_path / "a.png").write_bytes(fake_tasks.png(3, 4))
    captions = tmp_path / "captions.tsv"
    captions.write_text("a.png\t3 by 4\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        _evaluate(models / "namer", files=[str(captions)], robustness=True)
    assert caught.value.where == "--robustness"


def test_the_command_needs_data(models):
    with pytest.raises(UserError, match="data are missing or ambiguous"):
        command([str(models / "reverser")])


def test_variables_of_commands_are_needed_only_for_their_metrics():
    external = {"judge": {"command": ["judge", "--token", "${NOWHERE}"]}}
    record = VersionRecord(config={"evaluation": {"external": external, "metrics": ["chrf"]}})
    description = tasks.describe("translation")
    config = _evaluation_config(description, record, (), description.features)
    assert config.metrics == ("chrf",)
    with pytest.raises(UserError, match="the environment variable NOWHERE is not set"):
        _evaluation_config(description, record, ("judge",), description.features)


@pytest.fixture
def recorded(monkeypatch):
    """Sets the configuration that the models were trained with."""

    def record(**config):
        def open_with_record(name, registry, search=None):
            model, entry = open_model(name, registry, search=search)
            return model, entry.model_copy(update={"config": config})

        monkeypatch.setattr(module, "open_model", open_with_record)

    return record


EXTRA = {"train": "train.tsv", "extra": ["kind", "locale"]}
SLICES = {"metrics": ["exact_match"], "slices": {"by": ["kind", "locale"]}}


COLUMNS = ("source", "target", "kind", "locale")
NUMBERS = {name: number for number, name in enumerate(COLUMNS, 1)}
NAMES = {name: name for name in COLUMNS}


# Every format with every selection of columns that a training allows for it, and with none, one
# and both of the extra columns.
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize(
    ("kind", "selections"),
    [
        ("tsv", [None, NUMBERS, NUMBERS]),
        ("header", [None, NUMBERS, NAMES]),
        ("jsonl", [NAMES, None, NAMES]),
        ("csv", [NUMBERS, NAMES, None]),
        ("parquet", [NAMES, None, NAMES]),
    ],
)
def test_only_the_columns_of_the_task_are_needed(
    models, tmp_path, recorded, monkeypatch, kind, selections, count
):
    extras, absent = ("kind", "locale")[:count], ("kind", "locale")[count:]
    names = ("source", "target", *extras)
    rows = [
        dict(zip(names, (s, t, f"k{i % 2}", "x"), strict=False))
        for i, (s, t) in enumerate(zip(SOURCES, REFERENCES, strict=True))
    ]
    suffix = "tsv" if kind == "header" else kind
    path = tmp_path / f"a.{suffix}"
    write_rows(path, rows, "," if kind == "csv" else "\t", has_header=kind != "tsv")
    data = {**EXTRA, "train": f"train.{suffix}", "columns": selections[count]}
    recorded(data=data, evaluation=SLICES)
    slices = []
    score = module.score
    monkeypatch.setattr(module, "score", lambda *a: slices.append(a[-1].slices.by) or score(*a))
    notes = []
    result = _evaluate(models / "reverser", files=[str(path)], notes=notes)
    assert result.metrics["exact_match"].value == 0.6
    assert slices == [extras]
    left_out = [note for note in notes if "left out" in note]
    assert len(left_out) == min(len(absent), 1)
    assert all(name in left_out[0] for name in absent)


def test_columns_are_found_by_name(models, tmp_path):
    path = tmp_path / "a.tsv"
    rows = "".join(f"{t}\t{s}\n" for s, t in zip(SOURCES, REFERENCES, strict=True))
    path.write_text(f"tgt\tsrc\n{rows}", encoding="utf-8")
    notes = []
    result = _evaluate(models / "reverser", files=[str(path)], metrics=["exact_match"], notes=notes)
    assert result.metrics["exact_match"].value == 0.6
    assert any(SOURCES[0] in note and "src" in note for note in notes)


@pytest.mark.parametrize("first", ["en\tfr", "id\ta\tb"])
def test_errors_name_the_option_for_columns(models, tmp_path, first):
    path = tmp_path / "a.tsv"
    path.write_text(f"{first}\n" + "".join(f"7\t{s} x\tT. x\n" for s in SOURCES), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        _evaluate(models / "reverser", files=[str(path)])
    assert "`--columns source=" in caught.value.remedy
    assert "data.columns" not in caught.value.remedy
