import importlib
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from regard.components.common import code_digest as code_digests
from regard.components.common.code_digest import (
    PACKAGE,
    code_digest,
    remembered_digests,
    source_files,
)

NODES = sorted(path.parent.name for path in PACKAGE.glob("components/*/executor.py"))

IS_THOROUGH = settings.get_current_profile_name() == "thorough"
# A digest takes 0.1 s: `make test-all` changes every file of every node.
CHANGED_NODES = NODES if IS_THOROUGH else ["evaluator", "preprocess", "trainer"]
MAX_FILES = 6


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package that a test may change."""
    package = tmp_path_factory.mktemp("code") / "regard"
    ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(PACKAGE, package, ignore=ignore)
    return package


OWN = "regard.components.pusher"


def test_digests_are_remembered(tmp_path, monkeypatch):
    file, expected = tmp_path / "digests.json", code_digest(OWN)
    with remembered_digests(file):
        assert code_digest(OWN) == expected
    monkeypatch.setattr(code_digests, "_compute_digest", None)
    with remembered_digests(file):
        assert code_digest(OWN) == expected
    with pytest.raises(TypeError):  # outside of the block, nothing is remembered
        code_digest(OWN)


def test_digests_of_other_code_are_not_remembered(tmp_path, monkeypatch):
    file, expected = tmp_path / "digests.json", code_digest(OWN)
    with remembered_digests(file):
        code_digest(OWN)
    stored = json.loads(file.read_text())
    assert stored["digests"] == {OWN: expected}
    stored["digests"][OWN] = "of earlier code"
    damaged = ({**stored, "digests": digests} for digests in (3, [OWN], {OWN: 3}))
    for content in ({**stored, "state": "earlier"}, [], *damaged):
        file.write_text(json.dumps(content))
        with remembered_digests(file):
            assert code_digest(OWN) == expected
        assert json.loads(file.read_text())["digests"] == {OWN: expected}


def test_modules_of_the_user_are_read_again(tmp_path, monkeypatch):
    (tmp_path / "changing_nodes.py").write_text("A = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    digests = []
    for content in ("A = 1\n", "A = 2\n"):
        (tmp_path / "changing_nodes.py").write_text(content)
        with remembered_digests(tmp_path / "digests.json"):
            digests.append(code_digest("changing_nodes", OWN))
    assert digests[0] != digests[1]


def test_every_node_is_tested():
    assert {"corpus_gen", "predictor", "trainer", "tuner"} <= {*NODES}


@pytest.mark.parametrize("node", CHANGED_NODES)
def test_a_change_of_any_file_in_the_closure_changes_the_digest(copy, node):
    module = f"regard.components.{node}"
    before = code_digest(module, package=copy)
    files = source_files(module, package=copy)
    if not IS_THOROUGH and len(files) > MAX_FILES:
        files = random.Random(node).sample(files, MAX_FILES)
    for path in files:
        content = path.read_bytes()
        path.write_bytes(content + b"\n# one more line\n")
        assert code_digest(module, package=copy) != before, path
        path.write_bytes(content)
    assert code_digest(module, package=copy) == before


@pytest.mark.parametrize("node", CHANGED_NODES)
def test_a_change_outside_of_the_closure_does_not(copy, node):
    module = f"regard.components.{node}"
    before = code_digest(module, package=copy)
    outside = set(copy.rglob("*.py")) - set(source_files(module, package=copy))
    assert outside
    contents = {path: path.read_bytes() for path in outside}
    for path, content in contents.items():
        path.write_bytes(content + b"\n# one more line\n")
    assert code_digest(module, package=copy) == before
    for path, content in contents.items():
        path.write_bytes(content)


def test_layers_that_settings_choose_by_name_belong_to_a_training():
    folder = PACKAGE / "models/attention"
    layers = {*folder.glob("scores/*.py"), *folder.glob("alignments/*.py")}
    assert layers <= {*source_files("regard.components.trainer")}


@pytest.mark.slow
@pytest.mark.parametrize("node", ["example_validator", "trainer"])
def test_the_closure_holds_every_module_that_the_import_really_loads(node):
    """The interpreter's own list is the reference; it lacks only imports inside functions."""
    code = (
        "import gc, sys; gc.disable()\n"
        f"import regard.components.{node}.executor\n"
        "for name, module in sorted(sys.modules.items()):\n"
        "    if name.partition('.')[0] == 'regard' and module.__file__: print(module.__file__)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {Path(line) for line in process.stdout.split()}
    assert loaded - set(source_files(f"regard.components.{node}")) == set()


def test_the_page_of_the_report_is_package_data_of_the_reporter():
    names = {path.name for path in source_files("regard.components.reporter")}
    assert {"report.html.jinja", "report.css", "report.js"} <= names


def test_the_operations_of_servers_are_package_data_of_the_check():
    names = {path.name for path in source_files("regard.components.serving_check")}
    assert "supported_ops.json" in names


def test_a_decoder_is_not_part_of_the_tokenizers():
    files = source_files("regard.components.tokenizer_trainer")
    assert [path for path in files if "decoders" in path.parts] == []


def test_a_starter_configuration_is_not_part_of_a_training():
    """`regard init` copies starter.yaml; no code of the Trainer or of a task names it."""
    files = source_files("regard.components.trainer", "regard.models.tasks.translation")
    assert [path for path in files if path.suffix == ".yaml"] == []


@pytest.fixture
def small(tmp_path):
    """A function that writes a package of the given files."""

    def write(**files):
        package = tmp_path / "regard"
        for name, text in {"__init__": "", **files}.items():
            path = package.joinpath(*name.split("__in__")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return package

    return write


def test_an_import_for_type_checking_does_not_count(small):
    """It is never executed, so it cannot change a result."""
    package = small(
        a="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from regard.b import B\n",
        b="class B: ...\n",
    )
    assert [path.stem for path in source_files("regard.a", package=package)] == ["__init__", "a"]


def test_an_import_that_only_type_checkers_skip_counts(small):
    package = small(
        a="import typing\nif not typing.TYPE_CHECKING:\n    from regard.b import B\n",
        b="class B: ...\n",
    )
    assert package / "b.py" in source_files("regard.a", package=package)


def test_imports_inside_functions_and_names_in_strings_count(small):
    package = small(
        a="def f():\n    from regard.b import g\n    return g\n",
        b='RUN = "regard.c.run"\ng = ["-m", "regard.d"]\n',
        c="",
        d="import regard.e\n",
        e="",
        f="",
    )
    files = [path.stem for path in source_files("regard.a", package=package)]
    assert files == ["__init__", "a", "b", "c", "d", "e"]


def test_functions_of_the_package_itself_do_not_count(small):
    """Any module reaches them, for example by the name of an entry point: ``regard.scores``."""
    init = "import regard.b\ndef __getattr__(name):\n    import regard.c\n"
    package = small(__init__=init, a='GROUP = "regard.scores"\n', b="", c="")
    files = [path.stem for path in source_files("regard.a", package=package)]
    assert files == ["__init__", "a", "b"]


def test_the_name_of_a_folder_does_not_stand_for_the_package_around_it(small):
    package = small(
        nodes__in____init__="def f():\n    from regard.b import g\n",
        nodes__in__inner__in__a='NAME = "regard.nodes.inner"\n',
        b="",
    )
    files = source_files("regard.nodes.inner.a", package=package)
    assert package / "b.py" not in files


def test_a_table_of_lazy_imports_counts_for_who_reads_it_only(small):
    """Whoever imports from a package may get any of its names; a module inside gets none."""
    package = small(
        nodes__in____init__='_MODULES = {"regard.nodes.b": ("B",)}\n',
        nodes__in__a="",
        nodes__in__b="",
        c="from regard.nodes import B\n",
    )
    inside = source_files("regard.nodes.a", package=package)
    assert [path.stem for path in inside] == ["__init__", "__init__", "a"]
    outside = [path.stem for path in source_files("regard.c", package=package)]
    assert outside == ["__init__", "c", "__init__", "b"]


def test_a_module_that_does_not_exist_is_an_error(small):
    with pytest.raises(FileNotFoundError, match=r"regard\.nowhere"):
        source_files("regard.nowhere", package=small())


def test_what_another_package_imports_counts(small, tmp_path, monkeypatch):
    """A plug-in derives from a class whose edit changes what the plug-in computes."""
    package = small(a="", b="class B: ...\n", c="")
    plugin = tmp_path / "site" / "digest_plugin"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text("from regard.b import B\n")
    (plugin / "template.py").write_text("class {{ name }}: ...\n")
    monkeypatch.syspath_prepend(plugin.parent)
    digests = []
    for edited in ("", "b", "c"):
        if edited:
            (package / f"{edited}.py").write_text("changed = True\n")
        digests.append(code_digest("regard.a", "digest_plugin", package=package))
    assert digests[0] != digests[1] == digests[2]


def test_what_a_module_imports_from_its_folder_counts(small, tmp_path, monkeypatch):
    """A module next to a configuration, without a package around it."""
    folder = tmp_path / "site"
    (folder / "digest_helpers").mkdir(parents=True)
    (folder / "digest_nodes.py").write_text("def f():\n    from digest_words import BAD\n")
    (folder / "digest_words.py").write_text("import json, digest_helpers.inner\n")
    (folder / "digest_helpers/__init__.py").touch()
    (folder / "digest_other.py").touch()
    monkeypatch.syspath_prepend(folder)
    digests = []
    for edited in ("digest_other.py", "digest_words.py", "digest_helpers/inner.py"):
        digests.append(code_digest("digest_nodes", package=small()))
        (folder / edited).write_text("import digest_helpers\nedited = True\n")
    digests.append(code_digest("digest_nodes", package=small()))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


@pytest.fixture
def edits(small, tmp_path, monkeypatch):
    """Return whether an edit of a file changes the digest of ``digest_nodes``, by file."""
    monkeypatch.syspath_prepend(tmp_path / "own")

    def edits(imports, *files):
        (tmp_path / "own").mkdir(exist_ok=True)
        (tmp_path / "own/digest_nodes.py").write_text(imports)
        package = small()
        for file in files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text("import json\n")
        results = []
        for file in files:
            importlib.invalidate_caches()
            before = code_digest("digest_nodes", package=package)
            (tmp_path / file).write_text("edited = True\n")
            results.append(code_digest("digest_nodes", package=package) != before)
        return results

    return edits


def test_a_folder_without_an_init_file_counts(edits):
    files = ("own/digest_lists/words.py", "own/digest_lists/deep/more.py", "own/digest_rest/a.py")
    imports = "from digest_lists.words import BAD\nimport digest_lists.deep.more\n"
    assert edits(imports, *files) == [True, True, False]


def test_what_an_editable_installation_or_the_path_adds_counts(edits, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path / "checkout")
    files = ("checkout/digest_common/words.py", "checkout/digest_single.py", "checkout/digest_b.py")
    imports = "def f():\n    import digest_common.words, digest_single\n"
    assert edits(imports, *files) == [True, True, False]


def test_what_is_installed_or_built_in_does_not_count(edits, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    imports = "import digest_installed, json, sys, zipimport, numpy, digest_missing\n"
    assert edits(imports, "site-packages/digest_installed.py") == [False]
