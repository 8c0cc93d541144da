"""Modules of a user: where they are found, and what is said if they are not."""

import sys

import pytest

from regard.core import modules
from regard.core.errors import UserError


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", "/first")
    yield
    for name in [name for name in sys.modules if name.startswith("one_module")]:
        del sys.modules[name]


def test_an_object_of_a_module_in_a_folder(tmp_path):
    (tmp_path / "one_module.py").write_text("VALUE = 3\n")
    assert modules.is_missing("one_module.inner")
    with modules.importable(str(tmp_path)):
        assert not modules.is_missing("one_module.inner")
        assert modules.load_object("one_module:VALUE", str(tmp_path)) == 3
    assert str(tmp_path) not in sys.path


def test_a_folder_comes_after_what_is_installed_and_is_passed_to_children(tmp_path):
    modules.add_folder(None)
    for _ in range(2):
        modules.add_folder(str(tmp_path))
    assert sys.path.count(str(tmp_path)) == 1
    assert sys.path[-1] == str(tmp_path)
    assert modules.os.environ["PYTHONPATH"] == f"/first:{tmp_path}"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("one_module_that_is_missing:VALUE", "there is no module one_module_that_is_missing"),
        ("json.one:VALUE", "there is no module json.one"),
        ("one_module:VALEU", "has no 'VALEU'. Did you mean VALUE"),
        ("one_module_broken:VALUE", "cannot be imported: ZeroDivisionError"),
        ("one_module_exits:VALUE", "cannot be imported: SystemExit: 0"),
        ("one_module_needs:VALUE", "cannot be imported: No module named 'one_module_absent'"),
    ],
)
def test_what_is_wrong_with_a_reference(tmp_path, reference, message):
    (tmp_path / "one_module.py").write_text("VALUE = 3\n")
    (tmp_path / "one_module_broken.py").write_text("1 / 0\n")
    (tmp_path / "one_module_exits.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "one_module_needs.py").write_text("import one_module_absent\n")
    with modules.importable(str(tmp_path)), pytest.raises(UserError) as error:
        modules.load_object(reference, str(tmp_path))
    assert message in error.value.message


def test_another_module_of_the_same_name_is_refused(tmp_path):
    for name, value in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one_module.py").write_text(f"VALUE = {value}\n")
    for name in ("a", "b"):
        folder = str(tmp_path / name)
        with modules.importable(folder):
            if name == "a":
                assert modules.load_object("one_module:VALUE", folder) == 1
                continue
            with pytest.raises(UserError, match="another module one_module"):
                modules.load_object("one_module:VALUE", folder)
