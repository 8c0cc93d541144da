"""Translation units of TMX files."""

import gzip
import tracemalloc

import pytest

from regard.components.data import tmx
from regard.components.data.sources import FileGroup
from regard.models.tasks.description import Feature
from tests.components.corpora import SCORED, SUMMARISED, TRANSLATION, read_group, unreadable

COLUMNS = {"source": "en", "target": "fr"}


def unit(**texts):
    sides = "".join(
        f'<tuv xml:lang="{language.replace("_", "-")}"><seg>{text}</seg></tuv>\n'
        for language, text in texts.items()
    )
    return f"<tu>{sides}</tu>\n"


def document(*units, doctype='<!DOCTYPE tmx SYSTEM "tmx14.dtd">', encoding="utf-8"):
    head = f'<?xml version="1.0" encoding="{encoding}"?>\n{doctype}\n<tmx version="1.4">\n'
    return f"{head}<header/><body>\n{''.join(units)}</body></tmx>\n".encode(encoding)


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (COLUMNS, ("a & b", "c")),
        ({"source": "fr", "target": "EN-us"}, ("c", "a & b")),
        ({"source": "en-GB", "target": "de"}, ("x", "d")),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "cp1251"])
def test_languages(single, columns, row, encoding):
    units = [unit(de="d", en_US="a &amp; b", en_GB="x", FR="c"), unit(nl="e")]
    group = single("tmx", document(*units, encoding=encoding))
    rows, problems = read_group(group, columns=columns)
    assert rows == [(5, *row)]
    assert next(iter(problems.formats)).startswith("1 of 2 units lack ")


def test_inline_elements_and_old_files(single):
    text = "one <bpt i='1'>&lt;b&gt;</bpt><hi>t<![CDATA[w]]>o</hi><ept i='1'/> <ph>x</ph>&#252;"
    content = f"<tu><tuv lang='en'>\n<prop type='x'>p</prop><seg>\n {text} </seg></tuv>"
    content += "<tuv lang='fr'><note>n</note><seg/></tuv></tu>"
    rows, _ = read_group(single("tmx", document(content)), columns=COLUMNS)
    assert rows == [(5, "one two \xfc", "")]


def test_properties(single):
    content = unit(en="a", fr="b").replace("<tu>", '<tu><prop type="Domain">d</prop>')
    features = (*TRANSLATION, Feature("domain", "text", "extra"))
    columns = {**COLUMNS, "domain": "domain"}
    group = single("tmx", document(content, unit(en="a", fr="b")))
    assert read_group(group, features=features, columns=columns)[0] == [(5, "a", "b", "d")]
    scored = {"score": "domain", "one": "en", "other": "fr"}
    number = single("tmx", document(content.replace(">d<", ">2.5<")))
    assert read_group(number, features=SCORED, columns=scored)[0] == [(5, 2.5, "a", "b")]


def test_several_references(single):
    group = single("tmx", document(unit(en="a", fr="b"), unit(en="a", fr="c")))
    columns = {"text": "en", "summary": "fr"}
    assert read_group(group, features=SUMMARISED, columns=columns)[0] == [
        (5, "a", ["b", "c"], None)
    ]


def test_gzip_and_encoding(tmp_path):
    path = tmp_path / "a.tmx.gz"
    content = document(unit(en="a", fr="\u4e00")).decode().replace("utf-8", "gb18030")
    path.write_bytes(gzip.compress(content.encode("gb18030")))
    group = FileGroup("train", "tmx", (str(path),))
    rows, _ = read_group(group, columns=COLUMNS, encoding="gb18030")
    assert rows == [(5, "a", "\u4e00")]
    assert "`data.encoding`" in unreadable(group, columns=COLUMNS).problem.remedy


BOMB = "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("doctype", "text"),
    [
        (f'<!DOCTYPE tmx [<!ENTITY a "a">{BOMB}]>', "&i;"),
        ('<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]>', "&a;"),
        ('<!DOCTYPE tmx [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]>', "x"),
        ('<!DOCTYPE tmx SYSTEM "file:///etc/passwd">', "&nbsp;"),
    ],
)
def test_entities_are_refused(single, doctype, text):
    group = single("tmx", document(unit(en=text, fr="b"), doctype=doctype))
    assert "entities" in str(unreadable(group, columns=COLUMNS))


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (b"", "no element found", 1),
        (b"a\tb\n", "syntax error", 1),
        (document(unit(en="a", fr="b"))[:-20], "no element found", 7),
        (document("<tu>\n<seg></tu>"), "mismatched tag", 6),
        (document("</tuv>"), "mismatched tag", 5),
        (document("<hi>" * 200), "nested too deeply", 5),
        (document("<seg>a</seg>"), "no unit has en and fr", None),
        (document(unit(en="a", de="b")), "there are de, en", None),
        (document(unit(en="a")).replace(b"utf-8", b"nonsense"), "unknown encoding", 1),
    ],
)
def test_unreadable_files(single, content, message, line):
    error = unreadable(single("tmx", content), columns=COLUMNS)
    assert message in str(error)
    assert error.problem.line == line


def test_units_are_limited(single, monkeypatch):
    monkeypatch.setattr(tmx, "_MAX_UNIT", 1 << 20)
    group = single("tmx", document(unit(en="a", fr="b"), unit(en="word " * 700_000, fr="b")))
    assert "longer than 1 MiB" in str(unreadable(group, columns=COLUMNS))


def test_memory_is_bounded(single):
    group = single("tmx", document(*[unit(en="word " * 50, fr="b")] * 40_000))
    tracemalloc.start()
    try:
        rows, _ = read_group(group, columns=COLUMNS, bad_rows="skip")
        size = sum(len(row[1]) for row in rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(rows) == 40_000
    assert peak < size * 3
