"""Fuzzing of the parsers of data files and images: problems are recorded, nothing is raised."""

import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.components.data.images import Images
from regard.components.data.read_problems import ReadProblems
from regard.components.data.row_reader import read_rows
from regard.components.data.sources import FileGroup
from regard.components.data.unreadable_file import UnreadableFile
from tests.components.corpora import CAPTIONED, POINTED, SCORED, SUMMARISED, corpus_of, picture

FEATURES = (CAPTIONED, POINTED, SCORED, SUMMARISED)
NAMES = sorted({feature.name for features in FEATURES for feature in features})
THOROUGH = settings.get_current_profile_name() == "thorough"
MANY = settings(
    max_examples=5000 if THOROUGH else 150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TEXTS = st.text(max_size=12) | st.sampled_from(["../../etc/passwd", "/dev/zero", "a\x1b[31m", "\0"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4).map(json.dumps)
DEEP = st.integers(1, 3000).map(lambda n: '{"text": ' + "[" * n + "]" * n + "}")
LINES = st.lists(
    st.one_of(
        OBJECTS,
        DEEP,
        st.lists(TEXTS | VALUES.map(json.dumps), max_size=4).map("\t".join),
        st.text("{}[]:,\"'0123456789eE+-.\\u \t\r", max_size=30),
    ).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.binary(max_size=30),
    max_size=5,
).map(b"\n".join)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("nonsense")


@MANY
@given(
    content=LINES, features=st.sampled_from(FEATURES), kind=st.sampled_from(["jsonl", "tsv", "csv"])
)
def test_rows(folder, content, features, kind):
    path = folder / f"a.{kind}"
    path.write_bytes(content)
    problems = ReadProblems()
    corpus = corpus_of(folder, features, train=path.name)
    rows = read_rows(FileGroup("train", kind, (str(path),)), corpus, problems, Images(str(folder)))
    with contextlib.suppress(UnreadableFile):
        assert all(len(values) == len(features) for _, values in rows)
    assert problems.skipped_rows <= problems.rows


@MANY
@given(data=st.data(), kind=st.sampled_from(["png", "jpeg", "bmp"]))
def test_images(folder, data, kind):
    """A valid image with some bytes changed, and perhaps its end removed."""
    content = bytearray(picture(kind, size=(20, 20)))
    for _ in range(data.draw(st.integers(0, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (folder / "image").write_bytes(content[: data.draw(st.integers(0, len(content)))])
    problem = Images(str(folder), decode=True).problem("image")
    assert problem is None or problem.startswith("image ")
