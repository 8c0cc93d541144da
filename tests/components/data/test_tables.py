"""Delimiters, quotes and header rows of tables."""

import csv
import gzip
import io

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.components.data.formats import csv as csv_format
from regard.components.data.sources import FileGroup
from tests.components.corpora import (
    CAPTIONED,
    SCORED,
    SUMMARISED,
    TRANSLATION,
    first_error,
    read_group,
    table,
    unreadable,
)


def formats(problems):
    return list(problems.formats)


@pytest.mark.parametrize("name", ["comma", "semicolon", "tab", "bar"])
def test_delimiters_are_detected(single, name):
    sign = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}[name]
    other = ";" if sign == "," else ","
    rows = [("src", "tgt"), (f"one{other} two", "un"), (f'"a{sign} ""b""\nc"', "x"), ("d", "")]
    text = "".join(sign.join(row) + "\r\n" for row in rows)
    read, problems = read_group(single("csv", "\ufeff" + text))
    assert read == [(2, f"one{other} two", "un"), (3, f'a{sign} "b"\nc', "x"), (5, "d", "")]
    assert formats(problems) == [f"{name}-separated, header: src, tgt"]


def test_delimiter_is_set(single):
    assert read_group(single("csv", "a,b:c\n"), delimiter=":")[0] == [(1, "a,b", "c")]
    assert formats(read_group(single("csv", "a b\n"), delimiter=" ")[1]) == [
        "' '-separated, no header"
    ]


@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;", "sep=;;;", "\ufeffsep=;\r"])
def test_line_that_names_the_delimiter(single, first):
    text = f"{first}\nsource;target\n1, 2, 3;eins, zwei\n4, 5;vier\n"
    rows, problems = read_group(single("csv", text))
    assert rows == [(3, "1, 2, 3", "eins, zwei"), (4, "4, 5", "vier")]
    assert formats(problems) == ["semicolon-separated, header: source, target"]


def test_line_that_names_a_tab_or_an_unusual_delimiter(single):
    assert read_group(single("csv", "sep=^\na^b\n"))[0] == [(2, "a", "b")]
    for kind in ("csv", "tsv"):
        rows, _ = read_group(single(kind, "sep=\t\na\tb\nc\n"), bad_rows="skip")
        assert rows == [(2, "a", "b")]
    error = unreadable(single("tsv", "sep=;\na;b\n"))
    assert error.problem.line == 1
    assert "data.format: csv" in error.problem.remedy


def test_quotes_of_a_tsv_file_are_announced(single):
    quoted = "".join(f'"text ""{i}"""\t"wort {i}"\n' for i in range(6))
    text = quoted + "one\tun\n" * 4
    rows, problems = read_group(single("tsv", text))
    assert rows[0] == (1, '"text ""0"""', '"wort 0"')
    (note,) = formats(problems)
    assert "6 of 10 rows" in note
    remedy = {"delimiter": "\t"}
    rows, problems = read_group(single("csv", text), **remedy)
    assert rows[0] == (1, 'text "0"', "wort 0")
    speech = '"Yes", he said.\t"Oui"\n' * 4 + "one\tun\n" * 6
    assert formats(read_group(single("tsv", speech))[1]) == []


def test_one_cell_as_a_program_writes_it_shows_the_quotes(single):
    """pandas quotes the few cells of a tab-separated file that contain quotes."""
    text = "source\ttarget\n" + "one\tun\n" * 40 + '"He said ""hi"" to me"\tdeux\n'
    rows, problems = read_group(single("tsv", text))
    assert rows[-1] == (42, '"He said ""hi"" to me"', "deux")
    assert [note for note in formats(problems) if "1 of 42 rows" in note and "csv" in note]


def test_spaces_before_quotes_are_not_part_of_a_cell(single):
    text = '"source", "target"\n' + '"one, two", "un"\n' * 3 + '"three","trois"\n'
    rows, problems = read_group(single("csv", text))
    assert rows[0] == (2, "one, two", "un")
    assert rows[-1] == (5, "three", "trois")
    assert formats(problems) == [
        "comma-separated with spaces before quotes, header: source, target"
    ]
    plain = "source,target\n one, un\n"
    assert read_group(single("csv", plain))[0] == [(2, " one", " un")]


def test_blank_lines_of_a_tsv_file_are_no_rows(single):
    rows, problems = read_group(single("tsv", "\nsource\ttarget\n\none\tun\n  \n\n"))
    assert rows == [(4, "one", "un")]
    assert problems.skipped_rows == 0


def test_a_header_within_a_file_is_left_out(single):
    text = "tgt\tsrc\nun\tone\n"
    rows, problems = read_group(single("tsv", text * 2))
    assert rows == [(2, "one", "un"), (4, "one", "un")]
    assert len([note for note in formats(problems) if "repeat the header" in note]) == 1


def test_two_delimiters_that_fit_are_refused(single):
    text = "Ja, klar;Yes klar\nNein, nie;No never\n"
    error = unreadable(single("csv", text))
    assert error.problem.line == 1
    assert '";"' in error.problem.remedy
    assert '","' in error.problem.remedy
    assert read_group(single("csv", text), delimiter=";")[0][0] == (1, "Ja, klar", "Yes klar")
    with_header = read_group(single("csv", "source;target\n" + text))[0]
    assert with_header[0] == (2, "Ja, klar", "Yes klar")


def test_rows_that_only_resemble_a_delimiter_line(single):
    assert read_group(single("tsv", "sep=;\tx\na\tb\n"))[0] == [(1, "sep=;", "x"), (2, "a", "b")]
    assert read_group(single("csv", "sep=ab,x\n"))[0] == [(1, "sep=ab", "x")]


def test_carriage_return_in_a_cell_without_quotes(single):
    rows, problems = read_group(single("csv", "a,b\nc,d\re\nf,g\n"), bad_rows="skip")
    assert rows == [(1, "a", "b"), (3, "f", "g")]
    assert "carriage return" in problems.examples[0].text


def test_delimiter_of_a_table_with_invalid_rows(single):
    text = "src,tgt\na,b\nc;d\ne,f,g\n" + "h;i,j\n" * 3
    rows, problems = read_group(single("csv", text), bad_rows="skip")
    assert [row[0] for row in rows] == [2, 5, 6, 7]
    assert problems.skipped_rows == 2
    assert problems.examples[0].line == 3


def test_wrong_quotes_of_a_line(single):
    rows, problems = read_group(single("csv", 'a,b\n"c"d,e\nf,5" pipe\n\n"",""\n'))
    assert rows == [(1, "a", "b"), (3, "f", '5" pipe'), (5, "", "")]
    assert first_error(problems).where.endswith("a.csv:2")


@pytest.mark.parametrize("row", ['"e,f\ng,"h\n', '"e,f', '"e"f,"g\nh",i\n', '"e,f\ng,h\n'])
def test_quotes_over_lines_name_the_first(single, row):
    error = unreadable(single("csv", f"a,b\nc,d\n{row}"))
    assert error.problem.line == 3
    assert "quote" in error.problem.remedy


@pytest.mark.parametrize("row", ["x" * 50 + "\n", '","\n', "\n"])
def test_rows_are_limited(single, monkeypatch, row):
    text = f'a,b\n"{"x" * 200_000}\ny",b\n'
    assert len(read_group(single("csv", text))[0]) == 2
    monkeypatch.setattr(csv_format, "_MAX_ROW", 1 << 16)
    for end in ("", f'",b\n{text}'):
        error = unreadable(single("csv", 'a,b\n"x",y\n"' + row * 2000 + end))
        assert error.problem.line == 3
        assert "too long" in str(error)


@pytest.mark.parametrize("encoding", [None, "utf-16"])
def test_invalid_line_within_quotes(single, encoding):
    text = 'a,b\n"c\nd?"\ne",f\n"g\nh",i\nj,k\n'.replace('?"', "?")
    raw = text.encode().replace(b"?", b"\xff")
    if encoding:
        raw = text.replace("?", "\udc00").encode(encoding, "surrogatepass")
    rows, problems = read_group(single("csv", raw), encoding=encoding, bad_rows="skip")
    assert rows == [(1, "a", "b"), (5, "g\nh", "i"), (7, "j", "k")]
    assert (problems.rows, problems.skipped_rows) == (4, 1)
    assert problems.examples[0].line == 3


def test_columns_of_a_csv_file(single):
    group = single("csv", ",fr,en\n0,un,one\n")
    assert read_group(group, columns={"source": "en", "target": "fr"})[0] == [(2, "one", "un")]
    assert read_group(group, columns={"source": 3, "target": 2})[0] == [(2, "one", "un")]
    error = unreadable(group)
    ways = "`data.columns: {source: fr, target: en}` or `data.columns: {source: en, target: fr}`"
    assert error.problem.remedy == f"Set {ways}."


def test_gzip_and_several_tasks(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"text;summary;title\na;b;\na;c;d\n"))
    group = FileGroup("train", "csv", (str(path),))
    assert read_group(group, features=SUMMARISED)[0] == [(2, "a", ["b", "c"], None)]


HEADERS = {
    "en\tfr": TRANSLATION,
    "EN\tde-AT": TRANSLATION,
    "source\ttarget": TRANSLATION,
    "English\tNorwegian": TRANSLATION,
    "English words/sentences\tFrench words/sentences": TRANSLATION,
    "Source text\tTarget text": TRANSLATION,
    "input\toutput\tkind\tplace\tx": TRANSLATION,
    "relatedness_score\tsentence_A\tsentence_B": SCORED,
    "gs\tx\ty": SCORED,
    "file\tcaption": CAPTIONED,
    "src\tnorsk": TRANSLATION,
    "en_text\tno_text": TRANSLATION,
    "no\tsv": TRANSLATION,
    "\t0\t1": TRANSLATION,
    "score\tx\ty": SCORED,
}
ROWS = {
    "Hello.\tBonjour.": TRANSLATION,
    "question\tFrage": TRANSLATION,
    "source\tsource": TRANSLATION,
    "It is\tEs ist": TRANSLATION,
    "dog\tHund": TRANSLATION,
    "word\tWort": TRANSLATION,
    "12\t13": TRANSLATION,
    "\t": TRANSLATION,
    "3.5\tsentence\ttext": SCORED,
    "nan\tx\ty": SCORED,
    "\tx\ty": SCORED,
    "1.jpg\tcaption": CAPTIONED,
    "No\tNe": TRANSLATION,
    "no\tne": TRANSLATION,
    "ab\tba": TRANSLATION,
    "It\tEs": TRANSLATION,
    "En\tDe": TRANSLATION,
    "eng\tfra\tA dog.\tUn chien.": TRANSLATION,
    "getName\tsetName": TRANSLATION,
    "n/a\tA man runs\tA woman sings": SCORED,
    "N/A\tx\ty": SCORED,
    "none\tx\ty": SCORED,
    "-\tx\ty": SCORED,
    "good\tA man runs\tA woman sings": SCORED,
}


@pytest.mark.parametrize("first", [*HEADERS, *ROWS])
def test_header_is_detected(single, first):
    features = {**HEADERS, **ROWS}[first]
    row = table(("1", *"cdefg")[: first.count("\t") + 1])
    columns = {feature.name: i for i, feature in enumerate(features, 1)}
    group = single("tsv", f"{first}\n{row}")
    _, problems = read_group(group, features=features, columns=columns)
    assert problems.rows == (1 if first in HEADERS else 2)
    assert bool(problems.formats) == (first in HEADERS)
    for header in (True, False):
        group = single("tsv", f"{first}\n{row}" if header else f"{row}{first}\n")
        _, problems = read_group(group, features=features, header=header, columns=columns)
        assert problems.rows == 2 - header


@pytest.mark.parametrize("first", ["target\tUrsprung", "summary\tResumen", "Wort\tquestion"])
def test_a_row_with_the_name_of_another_column_is_refused(single, first):
    error = unreadable(single("tsv", f"{first}\na\tb\n"))
    assert "data.header" in error.remedy
    for header, lines in ((False, [1, 2]), (True, [2])):
        columns = {"source": 1, "target": 2}
        rows, _ = read_group(single("tsv", f"{first}\na\tb\n"), header=header, columns=columns)
        assert [row[0] for row in rows] == lines


def test_comma_in_a_tsv_file(single):
    error = unreadable(single("tsv", "en,fr\na,b\n"))
    assert error.problem.line == 1
    assert "set `data.format: csv`" in error.problem.remedy
    assert read_group(single("tsv", "a, b\tc\nd, e\tf\n"))[0] == [
        (1, "a, b", "c"),
        (2, "d, e", "f"),
    ]


CELLS = st.text(st.sampled_from("ab,;\t|\"\n\r '\u00e9\u2028"), max_size=6)


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5),
    sign=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_rows_are_those_of_csv_and_pyarrow(tmp_path_factory, rows, sign, quoting, end):
    if quoting == csv.QUOTE_MINIMAL:  # leaves carriage returns without quotes
        rows = [[cell.replace("\r", "") for cell in row] for row in rows]
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=sign, quoting=quoting, lineterminator=end).writerows(rows)
    path = tmp_path_factory.getbasetemp() / "random.csv"
    path.write_bytes(buffer.getvalue().encode())
    group = FileGroup("train", "csv", (str(path),))
    read, problems = read_group(group, delimiter=sign, header=False)
    expected = csv.reader(io.StringIO(buffer.getvalue(), newline=""), delimiter=sign)
    # A carriage return before a line feed is not part of a text.
    normal = [[cell.replace("\r\n", "\n") for cell in row] for row in expected]
    assert [list(row[1:]) for row in read] == normal
    assert not problems.skipped_rows
    if quoting == csv.QUOTE_ALL and len(rows) > 1 and "\r" not in buffer.getvalue():
        options = pa.csv.ParseOptions(delimiter=sign, newlines_in_values=True)
        names = pa.csv.ReadOptions(column_names=["a", "b"])
        strings = pa.csv.ConvertOptions(column_types={"a": pa.string(), "b": pa.string()})
        content = pa.csv.read_csv(str(path), names, options, strings)
        assert [row[1:] for row in read] == list(zip(*content.to_pydict().values(), strict=True))
