"""The page about the rows on which two models differ."""

import html
import json
import re

import pytest

from regard.components.common import prediction_table
from regard.components.evaluator.row_differences import RowDifferences
from regard.components.reporter import difference_page, page
from tests.components.reporter import sample_runs


def outputs_of(facts):
    return prediction_table.read(facts.table, ["hypothesis"])["hypothesis"]


@pytest.fixture
def compared(facts, tmp_path):
    """A run whose version in production has a wrong number and repeats a word."""
    outputs = outputs_of(facts)
    outputs[3] = outputs[3].replace("3", "33")
    outputs[5] = "IT RAINS RAINS 5"
    return sample_runs.with_production(facts, tmp_path, outputs)


def read_data(text):
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(data)


def test_rows_of_both_models(compared):
    data = read_data(difference_page.render(compared))
    assert data["names"] == ["candidate", "version 1"]
    assert [row["location"] for row in data["rows"]] == ["test.tsv:4", "test.tsv:6"]
    number, repetition = data["rows"]
    assert [part[0] for part in number["outputs"][0] if part[1]] == ["3"]
    assert [part[0] for part in number["outputs"][1] if part[1]] == ["33"]
    assert number["errors"] == [[], ["number"]]
    assert repetition["errors"] == [[], ["repetition"]]
    assert all(side["outputs"]["alignment"] for side in number["maps"])
    assert number["slices"] == [0]


def test_no_page_of_one_model_and_no_rows_of_equal_ones(facts, tmp_path):
    assert difference_page.render(facts) == ""
    same = sample_runs.with_production(facts, tmp_path, outputs_of(facts))
    text = difference_page.render(same)
    assert "differ on 0 of 20 rows" in text
    assert read_data(text)["rows"] == []


def test_names_and_hostile_texts(facts, tmp_path):
    outputs = outputs_of(facts)
    outputs[-1] = f"{sample_runs.HOSTILE} \u2028 ]]>"
    compared = sample_runs.with_production(facts, tmp_path, outputs)
    text = difference_page.render(compared, ["a/b/<i>/2", "mine@1"])
    assert "<i>" not in text
    assert f"{html.escape('<i>')}/2 compared with mine@1" in text
    (row,) = read_data(text)["rows"]
    assert "".join(part[0] for part in row["outputs"][1]) == outputs[-1]


def test_only_the_first_rows_have_attention(compared, monkeypatch):
    monkeypatch.setattr(difference_page, "_MAX_DETAILED_ROWS", 1)
    first, second = read_data(difference_page.render(compared))["rows"]
    assert len(first["maps"]) == 2
    assert second["maps"] == []


@pytest.mark.parametrize("kind", ["points", "image", "number"])
def test_other_tasks(kind, tmp_path):
    facts = sample_runs.KINDS[kind](tmp_path)
    others = {"points": [2, 1, 0], "image": "another", "number": 0.25}
    outputs = [others[kind], *outputs_of(facts)[1:]]
    compared = sample_runs.with_production(facts, tmp_path, outputs)
    (row,) = read_data(difference_page.render(compared))["rows"]
    assert row["outputs"][1][0][0] == str(others[kind])
    assert len(row["inputs"]) == len(facts.contract["inputs"])


def test_the_report_links_to_the_page(compared, facts, tmp_path):
    file = tmp_path / "report.html"
    page.write(file, compared)
    other = difference_page.difference_page_path(file)
    assert f'href="{other.name}"' in file.read_text(encoding="utf-8")
    assert read_data(other.read_text(encoding="utf-8"))["rows"]
    (tmp_path / "evaluation" / RowDifferences.FILE).unlink()
    other.unlink()
    page.write(file, compared)
    assert other.name not in file.read_text(encoding="utf-8")
    assert not other.exists()


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_filters_and_order_in_a_browser(chromium, compared, tmp_path, width):
    chromium.log.clear()
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    chromium.call("Emulation.setDeviceMetricsOverride", **size)
    file = tmp_path / "differences.html"
    file.write_text(difference_page.render(compared), encoding="utf-8")
    chromium.open(file.as_uri())

    def locations():
        elements = "[...document.querySelectorAll('.card .location span:first-child')]"
        return chromium.run(f"{elements}.map((e) => e.textContent).join()")

    def choose(name, value):
        element = f"document.querySelector('[name={name}]')"
        chromium.run(f"{element}.value = {value!r}")
        chromium.run(f"{element}.dispatchEvent(new Event('input', {{bubbles: true}}))")

    assert locations() == "test.tsv:4,test.tsv:6"
    assert chromium.run("document.documentElement.scrollWidth") <= width
    choose("kind", "number")
    assert locations() == "test.tsv:4"
    choose("change", "new")
    assert locations() == ""
    choose("change", "fixed")
    assert locations() == "test.tsv:4"
    choose("kind", "")
    choose("text", "RAINS")
    assert locations() == "test.tsv:6"
    choose("text", "")
    choose("order", "better")
    gains = locations().split(",")
    choose("order", "worse")
    assert locations().split(",") == gains[::-1]
    choose("slice", "1")
    assert locations() == ""
    choose("slice", "")
    chromium.run("document.querySelector('.attention').open = true")
    chromium.run("new Promise((done) => setTimeout(done, 50))")
    assert chromium.run("document.querySelectorAll('.attention[open] .token').length") > 0
    assert chromium.log == []
