import bz2
import gzip
import subprocess

import pytest

from regard.components.data.read_problems import ReadProblems
from regard.components.data.text_files import InvalidLine, read_lines
from regard.components.data.unreadable_file import UnreadableFile
from tests.components.corpora import first_error


def write(tmp_path, content: bytes, name="a.txt"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
    return str(path)


def read(path, **options):
    problems = ReadProblems()
    lines = read_lines(path, problems, **options)
    return [None if isinstance(text, InvalidLine) else text for text in lines], problems


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_block_size_does_not_matter(tmp_path, name, block):
    text = "\ufeffone\r\nzwei ü 漢字\n\n  four \nlast"
    rows, problems = read(write(tmp_path, text.encode(), name), block=block)
    assert rows == ["one", "zwei ü 漢字", "", "  four ", "last"]
    assert not problems.examples


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\n\n", ["a", ""]),
        (b"\n", [""]),
        (b"a\r", ["a"]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\rb\rc\nd\n", ["a\rb\rc", "d"]),
    ],
)
def test_last_line_feed_ends_no_line(tmp_path, content, rows):
    assert read(write(tmp_path, content))[0] == rows


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\u0085", "\f", "\v", "\x1c"])
def test_only_a_line_feed_ends_a_line(tmp_path, sign):
    assert read(write(tmp_path, f"a{sign}b\nc\n".encode()))[0] == [f"a{sign}b", "c"]


def test_line_of_ten_thousand_words(tmp_path):
    long = " ".join(["word"] * 10_000)
    assert read(write(tmp_path, f"a\n{long}\nb\n".encode()), block=4096)[0] == ["a", long, "b"]


def test_too_long_line(tmp_path):
    with pytest.raises(UnreadableFile, match=r"a line is longer than 0\.0625 MiB") as caught:
        read(write(tmp_path, b"a\n" + b"x" * 200_000), block=4096, max_line=1 << 16)
    assert caught.value.problem.line == 2


BAD = b"good\nb\xe9d\nfine\n\xff\n"


def test_invalid_utf8_has_file_and_line(tmp_path):
    path = write(tmp_path, BAD)
    rows, problems = read(path)
    assert rows == ["good", None, "fine", None]
    problems.skipped_rows = 2
    error = first_error(problems)
    assert error.where == f"{path}:2"
    assert "byte 0xE9 at byte 2" in error.message
    assert "2 invalid rows in total" in error.message
    assert "data.bad_rows" in error.remedy


def test_invalid_utf8_can_be_replaced(tmp_path):
    assert [*read_lines(write(tmp_path, BAD))] == ["good", "b\ufffdd", "fine", "\ufffd"]
    assert [*read_lines(write(tmp_path, b"b\0c\n"))] == ["b\ufffdc"]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
@pytest.mark.parametrize(
    "encoding",
    ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "gb18030", "shift_jis", "cp037"],
)
def test_encodings(tmp_path, name, block, encoding):
    text = (
        "\u4e00\u4e01 \uff21\n\u3042\r\n\nb"
        if encoding in ("gb18030", "shift_jis")
        else "\xe9\n\xfc\r\n\nb"
    )
    rows, problems = read(
        write(tmp_path, text.encode(encoding), name), block=block, encoding=encoding
    )
    assert rows == text.replace("\r", "").split("\n")
    assert not problems.examples


def test_invalid_bytes_of_an_encoding(tmp_path):
    rows, problems = read(write(tmp_path, b"a\nb\x81\nc\x80"), encoding="cp1252")
    assert rows == ["a", None, "c\u20ac"]
    assert problems.examples[0].text.startswith("not cp1252: byte 0x81 at byte 2")
    halves = "a\nb\ud800\nc".encode("utf-16", "surrogatepass")
    assert read(write(tmp_path, halves), encoding="utf-16")[0] == ["a", None, "c"]
    with pytest.raises(UnreadableFile, match="not utf-16"):
        read(write(tmp_path, "a\nb".encode("utf-16") + b"x"), encoding="utf-16")


GERMAN = "Die Straße ist schön, und die Häuser sind groß.\n"
RUSSIAN = "Привет, как дела сегодня?\n"
CHINESE = "今天天气很好，我们去公园。\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *[(GERMAN, "cp1252"), (RUSSIAN * 9, "cp1251"), (CHINESE * 9, "gb18030")],
        *[(GERMAN * 2, one) for one in ("utf_16_le", "utf_16_be", "utf_32_le", "utf_32_be")],
    ],
)
def test_probable_encoding(tmp_path, text, encoding):
    path = write(tmp_path, ("good\n" + text).encode(encoding))
    _, problems = read(path)
    problems.skipped_rows = 1
    remedy = f"These bytes look like {encoding}. Set `data.encoding: {encoding}`."
    assert first_error(problems).remedy == remedy
    assert all(read(path, encoding=encoding)[0])


def test_no_probable_encoding_of_utf8_with_errors(tmp_path):
    _, problems = read(write(tmp_path, GERMAN.encode() * 9 + GERMAN.encode("cp1252")))
    assert problems.examples[0].remedy is None
    _, problems = read(write(tmp_path, f"{GERMAN}\0{GERMAN}".encode()))
    assert problems.examples[0].remedy is None


def test_nul(tmp_path):
    rows, problems = read(write(tmp_path, b"a\nb\0c\n"))
    assert rows == ["a", None]
    assert problems.examples[0].text == "NUL at character 2: 'b\\x00c'"


def test_number_of_examples_is_limited(tmp_path):
    _, problems = read(write(tmp_path, b"\xff\n" * 50))
    assert [problem.line for problem in problems.examples] == list(range(1, 11))


LINES = gzip.compress("".join(f"line {i * i}\n" for i in range(20_000)).encode())


@pytest.mark.parametrize(
    ("name", "content", "message", "remedy"),
    [
        ("a.txt", b"", "empty", ""),
        ("a.gz", gzip.compress(b""), "empty", ""),
        ("a.gz", b"", "empty", ""),
        ("a.gz", LINES[: len(LINES) // 2], "truncated after line", "gzip -t"),
        ("a.gz", LINES[:-6] + b"\0" + LINES[-5:], "damaged", "gzip -t"),  # the checksum
        ("a.gz", b"A man sleeps.\n", "plain text", "gz"),
        ("a.gz", b"PK\x03\x04rest", "a zip archive", ""),
        ("a.gz", bz2.compress(b"a\n"), "bzip2", ""),
        ("a.txt", gzip.compress(b"a\n"), "the file is gzip", "gz"),
        ("a.txt", "a\n".encode("utf-16"), "UTF-16", "UTF-8"),
        ("a.txt", b"PAR1....", "Parquet", "parquet"),
        ("a.gz", gzip.compress(b"a\nb\n") + b"rest", "after line 2: what follows", "gzip -t"),
        ("a.txt", "a\n".encode("utf-32"), "UTF-32", "utf-32"),
        ("a.gz", gzip.compress("a\n".encode("utf-16")), "UTF-16", "utf-16"),
        ("a.txt", b"a\rb\rc", "CR", "tr "),
        ("a.gz", gzip.compress(b"\xef\xbb\xbfa\tb\rc\td\r"), "CR", "tr "),
    ],
    # Without the content: gzip writes the time into it.
    ids=lambda value: "content" if isinstance(value, bytes) else value,
)
def test_unreadable_files(tmp_path, name, content, message, remedy):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnreadableFile, match=message) as caught:
        read(str(tmp_path / name))
    assert remedy in caught.value.problem.remedy


def test_several_gzip_members(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    assert read(str(path))[0] == ["a", "b"]


@pytest.mark.parametrize("name", ["a b.txt", "a.txt.gz"])
def test_the_command_against_cr_alone_works(tmp_path, name):
    with pytest.raises(UnreadableFile) as caught:
        read(write(tmp_path, "eins\rzwei é\r".encode(), name))
    command = caught.value.problem.remedy.split("`")[1]
    subprocess.run(command, shell=True, check=True)
    assert read(str(tmp_path / name.replace(".txt", ".lf.txt")))[0] == ["eins", "zwei é"]


@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_lines_that_end_with_cr_alone(tmp_path, block):
    path = write(tmp_path, "ein Satz\rnoch einer\r".encode("utf-16"))
    with pytest.raises(UnreadableFile, match="CR"):
        read(path, block=max(block, 64), encoding="utf-16")
    # A carriage return in a text is no end of a line.
    long = "x" * 20_000 + "\r" + "y" * 20_000
    assert read(write(tmp_path, f"{long}\nb\n".encode()))[0] == [long, "b"]
