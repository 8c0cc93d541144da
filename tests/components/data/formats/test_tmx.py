"""Translation units of TMX files."""

import gzip
import tracemalloc

import pytest

from regard.components.data.formats import tmx
from regard.components.data.sources import FileGroup
from regard.core.features import Feature
from regard.core.kinds import TEXT
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
    ("columns", "pairs"),
    [
        (COLUMNS, [("a & b", "c"), ("x", "c")]),
        ({"source": "fr", "target": "EN-us"}, [("c", "a & b")]),
        ({"source": "en_US", "target": "fr"}, [("a & b", "c")]),
        ({"source": "en-GB", "target": "de"}, [("x", "d")]),
    ],
)
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "iso-8859-1", "cp1251"]
)
def test_languages(single, columns, pairs, encoding):
    units = [unit(de="d", en_US="a &amp; b", en_GB="x", FR="c"), unit(nl="e")]
    group = single("tmx", document(*units, encoding=encoding))
    rows, problems = read_group(group, columns=columns)
    assert rows == [(5, *pair) for pair in pairs]
    assert next(iter(problems.formats)).startswith("1 of 2 units lack ")


def test_several_texts_of_a_language(single):
    texts = ["eins", "zwei", "eins"]
    variants = "".join(f'<tuv xml:lang="fr"><seg>{text}</seg></tuv>' for text in texts)
    content = unit(en="a").replace("</tu>", f"{variants}</tu>") + unit(en="b", fr="c")
    rows, problems = read_group(single("tmx", document(content)), columns=COLUMNS)
    assert [row[1:] for row in rows] == [("a", "eins"), ("a", "zwei"), ("b", "c")]
    assert [note.split(";")[0] for note in problems.formats] == [
        "1 unit with several texts of a language"
    ]


def test_combinations_of_a_unit_are_limited(single):
    variants = "".join(
        f'<tuv xml:lang="{language}"><seg>{i}</seg></tuv>'
        for language in COLUMNS.values()
        for i in range(1000)
    )
    content = document(f"<tu>{variants}</tu>", unit(en="b", fr="c"))
    rows, problems = read_group(single("tmx", content), columns=COLUMNS, bad_rows="skip")
    assert [row[1:] for row in rows] == [("b", "c")]
    assert problems.skipped_rows == 1


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Click<ph x='1'>&lt;img alt='<sub>logo</sub>'&gt;</ph>here", "Click here"),
        ("Click<x/>here<ut/><ph/>now", "Click here now"),
        ("Click <ph/>here<ph/>.", "Click here."),
        ("un<bpt i='1'/>believ<ept i='1'/>able and <hi>S</hi>mall", "unbelievable and Small"),
        ("点击<ph/>这里", "点击这里"),
        ("one\r\n      line\twith  spaces\n", "one line with  spaces"),
        (" \n ", ""),
        ("a&#10;b&#9;c", "a b c"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_text_of_a_segment(single, text, read, encoding):
    group = single("tmx", document(unit(en=text, fr="b"), encoding=encoding))
    assert read_group(group, columns=COLUMNS)[0] == [(5, read, "b")]


@pytest.mark.parametrize(
    "character", ["&#x1F;", "&#12;", "&#0;", "&#xD800;", "&#x0000FFFF;", "\x01"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1251"])
def test_forbidden_characters_invalidate_their_unit_only(single, character, encoding):
    units = [unit(en="a", fr="b"), unit(en=f"c{character}d", fr="e"), unit(en="f", fr="g&#233;")]
    group = single("tmx", document(*units, encoding=encoding))
    rows, problems = read_group(group, columns=COLUMNS, bad_rows="skip")
    assert [row[1:] for row in rows] == [("a", "b"), ("f", "g\xe9")]
    assert (problems.skipped_rows, problems.examples[0].line) == (1, 8)
    assert "U+" in problems.examples[0].text
    # Where the text is not used, the unit is valid.
    other = document(unit(en="a", fr="b", de=character), unit(en=f"c<ph>{character}</ph>", fr="d"))
    assert len(read_group(single("tmx", other), columns=COLUMNS)[0]) == 2


def test_forbidden_characters_in_cdata(single):
    text = "<![CDATA[a&#x1F;b]]>"
    group = single("tmx", document(unit(en=text, fr="b"), unit(en="&amp;#x1F; &#65;", fr="d")))
    rows, problems = read_group(group, columns=COLUMNS, bad_rows="skip")
    assert [row[1:] for row in rows] == [("&#x1F; A", "d")]
    assert problems.skipped_rows == 1


def test_inline_elements_and_old_files(single):
    text = "one <bpt i='1'>&lt;b&gt;</bpt><hi>t<![CDATA[w]]>o</hi><ept i='1'/> <ph>x</ph>&#252;"
    content = f"<tu><tuv lang='en'>\n<prop type='x'>p</prop><seg>\n {text} </seg></tuv>"
    content += "<tuv lang='fr'><note>n</note><seg/></tuv></tu>"
    rows, _ = read_group(single("tmx", document(content)), columns=COLUMNS)
    assert rows == [(5, "one two \xfc", "")]


def test_properties(single):
    content = unit(en="a", fr="b").replace("<tu>", '<tu><prop type="Domain">d</prop>')
    features = (*TRANSLATION, Feature("domain", TEXT, "extra"))
    columns = {**COLUMNS, "domain": "domain"}
    group = single("tmx", document(content, unit(en="a", fr="b")))
    assert read_group(group, features=features, columns=columns)[0] == [(5, "a", "b", "d")]
    scored = {"score": "domain", "one": "en", "other": "fr"}
    number = single("tmx", document(content.replace(">d<", ">2.5<")))
    assert read_group(number, features=SCORED, columns=scored)[0] == [(5, 2.5, "a", "b")]


@pytest.mark.parametrize("language", ["id", "fr", "fr-CA"])
def test_a_property_is_not_a_text_of_the_language(single, language):
    property_ = f'<tu><prop type="{language}">7</prop>'
    content = unit(en="a", **{language: "b"}).replace("<tu>", property_)
    without = unit(en="c").replace("<tu>", property_)
    group = single("tmx", document(content, without))
    columns = {"source": "en", "target": language}
    assert [row[1:] for row in read_group(group, columns=columns)[0]] == [("a", "b")]
    features = (*TRANSLATION, Feature("number", TEXT, "extra"))
    rows, _ = read_group(group, features=features, columns={**columns, "number": language})
    assert len(rows) == 1


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
    group = single("tmx", document(*[unit(en="words" * 5_000, fr="b")] * 400))
    tracemalloc.start()
    try:
        rows, _ = read_group(group, columns=COLUMNS, bad_rows="skip")
        size = sum(len(row[1]) for row in rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(rows) == 400
    assert peak < size * 3


def test_protected_codes_stay(single):
    codes = (
        'A <bpt i="1">&lt;b&gt;</bpt>dog<ept i="1">&lt;/b&gt;</ept> <ph x="2">{0}</ph> runs'
        '<bpt i="3"/> far<ept i="3"/><ph x="4"/>.'
    )
    group = single("tmx", document(unit(en=codes, fr="x")))
    protect = {"kinds": ["markup"]}
    rows, _ = read_group(group, columns=COLUMNS, protect=protect)
    assert rows[0][1] == 'A <b>dog</b> {0} runs<g id="3"> far</g><x id="4"/>.'
    rows, _ = read_group(group, columns=COLUMNS)
    assert rows[0][1] == "A dog  runs far."
