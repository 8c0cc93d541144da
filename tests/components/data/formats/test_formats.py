"""The table of formats; the readers have tests of their own."""

import subprocess
import sys

import pytest

from regard.components.data import formats
from regard.components.data.formats.base import get_reader


@pytest.mark.parametrize("name", formats.NAMES)
def test_a_format_describes_itself(name):
    data_format = get_reader(name)
    assert data_format.name == name
    assert data_format.text
    assert set(data_format.keys) <= set(formats.FILE_KEYS)


def test_an_ending_shows_one_format():
    endings = [ending for data_format in formats.all_formats() for ending in data_format.endings]
    assert len(set(endings)) == len(endings)
    assert formats.format_of_ending(".tsv") == "tsv"
    assert formats.format_of_ending(".txt") is None


def test_the_reference_lists_all_formats_and_what_keys_mean_in_them():
    assert [name for name in formats.NAMES if f"{name} (" not in formats.describe_formats()] == []
    assert formats.describe_key("header") == "tsv, csv"
    assert formats.formats_with("delimiter") == ["tsv", "csv"]


def test_descriptions_need_no_pyarrow_and_no_tensorflow():
    code = (
        "import sys; from regard.components.data import formats; formats.all_formats();"
        "sys.exit(' '.join({'pyarrow', 'tensorflow', 'pandas', 'apache_beam'} & set(sys.modules)))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.stderr == "\n"
