"""The figures of the documentation show the numbers of the NumPy functions on its pages."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.models.attention.matrix_reference import attention
from tests.test_docs import PAGES, text

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FIGURES = sorted(DOCS.glob("figures/*.svg"))
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]*figures/[\w-]+\.svg)\)")
_TABLE = re.compile(r"^\|.* picture \|\n\|[-|]+\|\n((?:\|.*\n?)+)", re.MULTILINE)


@pytest.fixture(scope="module")
def numbers():
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module("figure_numbers")
    sys.path.remove(str(DOCS))


def test_the_script_writes_the_same_files(tmp_path):
    subprocess.run([sys.executable, DOCS / "figures.py", tmp_path], cwd=tmp_path, check=True)
    new = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(new) == [path.name for path in FIGURES]
    changed = [path.name for path in FIGURES if new[path.name] != path.read_bytes()]
    assert changed == [], "run python docs/figures.py"


@pytest.mark.parametrize("file", FIGURES, ids=lambda file: file.stem)
def test_a_figure_fits_a_phone_and_its_own_frame(file):
    assert file.stat().st_size < 60_000
    root = ElementTree.parse(file).getroot()
    width, height = float(root.get("width")), float(root.get("height"))
    assert width <= 420
    for element in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y = float(element.get("x")), float(element.get("y"))
        assert 0 <= x <= x + float(element.get("width")) <= width
        assert 0 <= y <= y + float(element.get("height")) <= height
    texts = {child.tag.rpartition("}")[2]: child.text for child in root}
    assert texts["title"]
    assert texts["desc"]


def test_every_figure_is_in_a_page_with_a_description():
    pictures = {
        ((ROOT / page).parent / link).resolve(): alt
        for page in PAGES
        for alt, link in _PICTURE.findall(text(page))
    }
    assert sorted(pictures) == FIGURES
    assert min(len(alt) for alt in pictures.values()) > 60


def test_every_concept_has_a_picture():
    tables = _TABLE.findall(text("docs/reference/concepts.md"))
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 25
    assert [row for row in rows if "](" not in row.split("|")[-2]] == []


def test_poolings(numbers):
    example = numbers.poolings()
    for weights in example.weights.values():
        np.testing.assert_allclose(weights.sum(), 1)
    wins = np.bincount(example.winners, minlength=5)
    np.testing.assert_array_equal(example.weights["max"] * 4, wins)
    assert example.weights["top_down"].argmax() == (example.states @ example.query).argmax()
    # The page describes the picture.
    assert wins.tolist() == [2, 1, 0, 1, 0]
    assert set(np.argsort(example.weights["top_down"])[-2:]) == {1, 4}


def test_teacher_forcing_reads_the_reference_where_another_token_is_more_probable(numbers):
    steps = numbers.forced_steps()
    assert steps.distributions[1].argmax() != steps.target[1]
    chosen = [p[token] for p, token in zip(steps.distributions, steps.target, strict=True)]
    np.testing.assert_allclose(np.exp(steps.log_probs), chosen)
    np.testing.assert_allclose(chosen, [0.5, 0.3, 0.8])


def test_the_tree_of_a_search(numbers):
    tree = numbers.search_tree()
    assert (tree.greedy, tree.best) == ((0, 2), (1, 2))
    assert tree.beam == {(), (0,), (1,), (0, 0), (0, 1)}
    for prefix in tree.beam:
        children = [tree.probabilities[(*prefix, token)] for token in range(3)]
        np.testing.assert_allclose(sum(children), tree.probabilities[prefix])


def test_annotations_depend_on_one_side_only(numbers):
    forward, backward = numbers.influence(samples=20)
    np.testing.assert_array_equal(np.triu(forward, 1), 0)
    np.testing.assert_array_equal(np.tril(backward, -1), 0)
    assert (np.diff(forward[-1]) > 0).all()
    assert (np.diff(backward[0]) < 0).all()


def test_the_lookup_equals_products_of_matrices(numbers):
    data = numbers.lookup()
    scaled = np.sqrt(len(data.query)) * data.query[None]  # `attention` divides by the root
    context, weights = attention(scaled, data.keys, data.values)
    np.testing.assert_allclose(weights[0], data.weights, rtol=1e-6)
    np.testing.assert_allclose(context[0], data.context, rtol=1e-6)


def test_masks(numbers):
    masks = numbers.masks()
    for mask in masks.values():
        np.testing.assert_allclose(mask.weights.sum(axis=1), 1)
        np.testing.assert_array_equal(mask.weights > 0, mask.allowed)
        np.testing.assert_array_equal(np.exp(mask.added), mask.allowed)
    np.testing.assert_array_equal(masks["causal"].allowed, np.tril(np.ones((5, 5), bool)))
    np.testing.assert_array_equal(masks["causal"].weights[2], masks["padding"].weights[2])


def test_costs(numbers):
    lengths, operations, paths = numbers.costs()
    is_cheaper = operations["self-attention"] < operations["recurrence"]
    np.testing.assert_array_equal(is_cheaper, lengths < numbers.DEPTH)
    (same,) = np.flatnonzero(lengths == numbers.DEPTH)
    assert operations["self-attention"][same] == operations["recurrence"][same]
    assert set(paths["self-attention"]) == {1}
    np.testing.assert_array_equal(paths["recurrence"], lengths)
    np.testing.assert_allclose(numbers.KERNEL ** paths["convolution"], lengths)
    is_local = lengths <= numbers.NEIGHBOURS
    is_equal = operations["neighbours"] == operations["self-attention"]
    np.testing.assert_array_equal(is_equal, is_local)
    np.testing.assert_array_equal(paths["neighbours"] == 1, is_local)


def test_positions(numbers):
    sinusoids, pairs = numbers.sinusoid_map(), numbers.rotated()
    np.testing.assert_array_equal(sinusoids[0], [0, 1] * (numbers.COMPONENTS // 2))
    # The angles are those of the sinusoids: pair i has component 2 i as sine and 2 i + 1 as cosine.
    np.testing.assert_allclose(pairs[..., 0], sinusoids[: len(pairs), 1::2], atol=1e-12)
    np.testing.assert_allclose(pairs[..., 1], sinusoids[: len(pairs), 0::2], atol=1e-12)
