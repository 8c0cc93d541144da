"""The declared functions are those of TensorFlow's headers."""

import re
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_void_p

import pytest

from regard.serving import c_api

TYPES = {
    "const char*": c_char_p,
    "int": c_int,
    "int64_t": c_int64,
    "size_t": c_size_t,
    "void": None,
    "TF_Code": c_int,
    "TF_DataType": c_int,
}


def declarations():
    """Return the type of the result and the number of arguments of each function."""
    folder = c_api.find_package("tensorflow") / "include" / "tensorflow" / "c"
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.h")))
    text = re.sub(r"//.*|\bextern\b", "", text)
    matches = re.findall(r"TF_CAPI_EXPORT\s+([^;()]*?)\s*\b(TF_\w+)\(([^;]*?)\);", text)
    return {name: (result, arguments) for result, name, arguments in matches}


def number_of(arguments):
    if arguments.strip() in ("", "void"):
        return 0
    return len(re.sub(r"\([^()]*\)", "", arguments).split(","))


@pytest.mark.parametrize("name", c_api._FUNCTIONS)
def test_functions(name):
    result, arguments = declarations()[name]
    function = getattr(c_api.load_tensorflow(), name)
    assert function.restype == TYPES.get(result, c_void_p)
    assert len(function.argtypes) == number_of(arguments)


def test_a_missing_package_is_an_error_of_the_session():
    with pytest.raises(c_api.SessionError) as caught:
        c_api.find_package("no_such_package")
    assert caught.value.code == c_api.FAILED_PRECONDITION
