from pathlib import Path

from regard.components.common.artifact_files import split_shards
from regard.components.common.prediction_table import Row
from regard.components.data.example_rows import read_rows as read
from regard.components.predictor import split_reader
from regard.core.features import Feature
from regard.core.kinds import NUMBER, POINTS, POSITIONS, TEXT
from tests import fake_models, fake_tasks


def split(tmp_path: Path, *shards) -> str:
    return str(Path(fake_models.examples(tmp_path, shards).uri, "Split-test"))


def read_rows(folder: str, features) -> list[Row]:
    examples = [example for path in split_shards(folder) for example in read(path, features)]
    return [split_reader.to_row(example, features) for example in examples]


def row(**values) -> dict:
    return {"source": "s", "target": "t", **values}


def test_numbers_have_their_shortest_form(tmp_path):
    features = [
        Feature("source", TEXT),
        Feature("target", NUMBER, role="reference"),
        Feature("weight", NUMBER, role="extra"),
    ]
    (parsed,) = read_rows(split(tmp_path, [row(target=4.2, weight=1e-7)]), features)
    assert parsed.references == [4.2]
    assert parsed.extras == {"weight": 1e-7}


def test_missing_optional_values_are_none(tmp_path):
    features = [
        Feature("source", TEXT),
        Feature("target", TEXT, role="reference", optional=True),
        Feature("points", POINTS, role="extra", optional=True),
        Feature("tour", POSITIONS, role="extra", optional=True),
    ]
    (parsed,) = read_rows(split(tmp_path, [row(target=[], points=[], tour=[])]), features)
    assert parsed.references == []
    assert parsed.extras == {"points": None, "tour": None}


def test_images_of_some_rows(tmp_path):
    """Row numbers follow the corpus, whatever the order of the files."""
    images = [
        {
            "image": f"image {n}".encode(),
            "image_file": f"{n}",
            "caption": ["c"],
            "file": "f",
            "line": n,
        }
        for n in range(5)
    ]
    folder = split(tmp_path, [images[3], images[0]], [images[4], images[1], images[2]])
    read = read_rows(folder, fake_tasks.CAPTIONING)
    order = split_reader.corpus_order([(entry.file, entry.line) for entry in read])
    assert [read[index].paths["image"] for index in order] == ["0", "1", "2", "3", "4"]
    records = split_reader.read_images(folder, ["image"], [4, 1])
    assert records == {n: {"image": f"image {n}".encode()} for n in (1, 4)}


def test_the_tag_begins_the_text_unless_it_is_blank(tmp_path):
    features = [*fake_models.FEATURES, Feature("lang", TEXT, role="extra", tags=("de", "fr"))]
    shard = [row(source="a dog", lang="fr"), row(source=" ", lang="de")]
    parsed = read_rows(split(tmp_path, shard), features)
    assert [row.inputs["source"] for row in parsed] == ["<fr> a dog", " "]
    assert [row.extras for row in parsed] == [{"lang": "fr"}, {"lang": "de"}]
