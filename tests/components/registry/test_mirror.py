"""A registry in object storage: pushes, faults, readers, and commands that change it."""

import shutil
import uuid

import pytest

from regard.components.registry import mirror as mirrors
from regard.components.registry.overview import list_versions
from regard.components.registry.prune import pin, prune, unpin
from regard.components.registry.publish import WithdrawnModelError, check_content, push
from regard.components.registry.records import VersionRecord
from regard.components.registry.rollback import rollback
from regard.components.registry.starting_models import find_warm_start
from regard.components.registry.store import LATEST, Registry, production_baseline
from regard.core.errors import UserError
from regard.core.storage import SOURCE, ObjectStore, registry_folder
from regard.models.settings.training import TrainingConfig
from regard.pipeline.deployment.serve import list_models
from regard.serving.server.versions import list_versions as served_versions
from tests.components.registry.models import make_model, weights_of

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def uri(monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_HOME", str(tmp_path / "host"))
    return f"memory://{uuid.uuid4().hex}/registry"


@pytest.fixture
def push_to(uri, tmp_path):
    """Pushes a model with these weights."""

    def push_to(weights, **record):
        model = make_model(tmp_path / uuid.uuid4().hex, b"%d" % weights)
        return push(model, registry_folder(uri), "m", VersionRecord(**record))

    return push_to


@pytest.fixture
def other_host(monkeypatch, tmp_path):
    """From now on, this process has the local copies of another host."""

    def move(name="other"):
        monkeypatch.setenv("REGARD_HOME", str(tmp_path / name))

    return move


def objects(uri):
    files = fsspec.filesystem("memory")
    root = "/" + uri.removeprefix("memory://")
    return sorted(name.removeprefix(f"{root}/") for name in files.find(root))


def reasons(registry):
    """Prune to one version, and return why each version is kept."""
    return [result.kept_because for result in prune(registry, "m", 1)]


def test_a_push_from_one_host_is_read_on_another(uri, push_to, other_host):
    assert [push_to(1, run="r1"), push_to(2), push_to(2)] == [(1, True), (2, True), (2, False)]
    layout = ["fingerprint.pb", "regard.json", "saved_model.pb"]
    layout.append("variables/variables.data-00000-of-00001")
    assert objects(uri) == [f"m/{n}/{file}" for n in (1, 2) for file in layout]
    other_host()
    registry = Registry(uri)
    assert (registry.names(), registry.versions("m")) == (["m"], [1, 2])
    assert registry.record("m", 1).run == "r1"
    # Weights are copied only when they are needed.
    assert not (registry.path("m", 2) / "variables").exists()
    assert weights_of(registry, None) == 2 if registry.resolve("m") else None
    assert not (registry.path("m", 1) / "variables").exists()
    check_content(registry.resolve("m@1"))
    folder, version = production_baseline(f"{uri}/m", LATEST)
    assert (version, weights_of(Registry(uri))) == ("2", 2)
    assert folder == str(registry.path("m", 2))
    assert [entry.bytes for entry in list_versions(registry)] == [
        sum(len(fsspec.filesystem("memory").cat(f"/{uri[9:]}/{name}")) for name in objects(uri)
            if name.startswith(f"m/{number}/"))
        for number in (2, 1)
    ]  # fmt: skip


def test_the_local_copy_follows_the_store(uri, push_to, other_host):
    push_to(1), push_to(2), push_to(3)
    other_host()
    assert Registry(uri).resolve("m@2").is_dir()
    pin(Registry(uri), "m", 1)
    other_host("host")
    assert reasons(Registry(uri)) == [
        "live",
        None,
        "pinned",
    ]
    assert unpin(Registry(uri), "m", 1)
    other_host()
    registry = Registry(uri)
    assert registry.versions("m") == [1, 3]
    assert not registry.path("m", 2).exists()
    assert reasons(registry) == ["live", None]
    assert {name.split("/")[1] for name in objects(uri)} == {"3"}
    # A registry that starts again has other models under the same numbers.
    fsspec.filesystem("memory").rm("/" + uri.removeprefix("memory://"), recursive=True)
    shutil.rmtree(registry_folder(uri))
    Registry(uri)
    push_to(7)
    other_host("host")
    assert weights_of(Registry(uri)) == 7 if Registry(uri).resolve("m") else None


def test_a_rollback_withdraws_the_model_for_all_hosts(uri, push_to, other_host):
    push_to(1), push_to(2)
    other_host()
    record = rollback(Registry(uri), "m")
    assert (record.version, record.rollback_of, record.rolled_back_from) == (3, 1, 2)
    other_host("host")
    with pytest.raises(WithdrawnModelError):
        push_to(2)
    assert push_to(3) == (4, True)


@pytest.mark.parametrize("method", ["put_file", "cp_file", "pipe_file"])
@pytest.mark.parametrize("calls", [0, 1, 2])
@pytest.mark.parametrize("killed", [False, True])
def test_a_store_that_refuses_writes_half_way(
    uri, push_to, other_host, monkeypatch, method, calls, killed
):
    push_to(1)
    files, left = fsspec.filesystem("memory"), [None] * calls
    write = getattr(type(files), method)

    def refuse(self, *args, **kwargs):
        if not left:
            raise PermissionError("Access Denied")
        left.pop()
        return write(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(type(files), method, refuse)
        if killed:  # nobody cleans up
            patch.setattr(ObjectStore, "remove", lambda self, name: None)
        if method == "pipe_file" and calls == 2:
            push_to(2)  # only the mark and the record are written this way
            return
        with pytest.raises(UserError, match="Access Denied") as caught:
            push_to(2)
        assert caught.value.where.startswith(f"registry: {uri}/m/")
    if not killed:
        assert {name.split("/")[1] for name in objects(uri)} == {"1"}
    other_host()
    registry = Registry(uri)
    assert registry.versions("m") == [1]
    assert [path.name for path in registry.root.glob("m/[!.]*")] == ["1"]
    assert push_to(3)[1]
    assert len(Registry(uri).versions("m")) == 2
    # What a killed push has left is removed after a day.
    monkeypatch.setattr(mirrors, "MAX_AGE_SECONDS", -1.0)
    push_to(4)
    whole = {f"{number}" for number in Registry(uri).versions("m")}
    assert {name.split("/")[1] for name in objects(uri)} == whole


def test_two_hosts_push_at_once(uri, push_to, other_host, monkeypatch):
    """The second push finishes while the first one copies its files: the first one starts over."""
    push_to(1)
    copy, state = ObjectStore.copy, {"done": False}

    def copy_and_interfere(self, source, target):
        if not state["done"]:
            state["done"] = True
            other_host("other")
            assert push_to(5) == (3, True)  # the number 2 is claimed
            other_host("host")
        copy(self, source, target)

    monkeypatch.setattr(ObjectStore, "copy", copy_and_interfere)
    assert push_to(2) == (4, True)
    registry = Registry(uri)
    assert registry.versions("m") == [1, 3, 4]
    assert {name.split("/")[1] for name in objects(uri)} == {"1", "3", "4"}


def test_a_rollback_during_a_push_of_the_withdrawn_model(uri, push_to, other_host, monkeypatch):
    push_to(1), push_to(2)
    create, state = ObjectStore.create, {"done": False}

    def create_and_interfere(self, name, content):
        if not state["done"] and name.endswith("regard.json"):
            state["done"] = True
            rollback(Registry(uri), "m")
        return create(self, name, content)

    monkeypatch.setattr(ObjectStore, "create", create_and_interfere)
    push_to(3)  # took its decision before the rollback, and decides again
    assert Registry(uri).record("m", Registry(uri).latest("m")).withdrawn


def test_servers_see_only_whole_versions(uri, push_to, other_host, monkeypatch):
    push_to(1), push_to(2)
    other_host()
    (config,) = list_models(["m"], None, registry_folder(uri))
    assert [*served_versions(config.base_path)] == [2]
    assert (served_versions(config.base_path)[2] / "variables").is_dir()
    other_host("host")
    push_to(3)
    other_host()
    config.refresh()  # not so soon
    assert [*served_versions(config.base_path)] == [2]
    monkeypatch.setattr(mirrors, "REFRESH_SECONDS", 0.0)
    config.refresh()
    assert [*served_versions(config.base_path)] == [2, 3]
    prune(Registry(uri), "m", 1)
    config.refresh()
    assert [*served_versions(config.base_path)] == [3]


def test_a_record_of_another_scheme_does_not_matter(uri, push_to):
    push_to(1)
    files = fsspec.filesystem("memory")
    root = "/" + uri.removeprefix("memory://")
    files.pipe_file(f"{root}/notes.txt", b"x")
    files.pipe_file(f"{root}/m/007/saved_model.pb", b"x")
    files.pipe_file(f"{root}/other/5/variables/x", b"x")
    registry = Registry(uri)
    assert (registry.names(), registry.versions("m")) == (["m"], [1])
    assert push_to(2) == (8, True)  # above every number in use


def test_the_source_is_written_once_and_read_back(uri):
    folder = registry_folder(f"{uri}/")
    assert (folder / SOURCE).read_text() == uri
    assert Registry(folder).location("m", "1") == f"{uri}/m/1"
    assert registry_folder("relative/folder").as_posix() == "relative/folder"


def test_a_check_before_a_run(uri, push_to, monkeypatch):
    push_to(1)
    Registry(uri).mirror.check_writable("m")
    assert len(objects(uri)) == 4
    files = fsspec.filesystem("memory")

    def refuse(self, *args, **kwargs):
        raise PermissionError("Access Denied")

    monkeypatch.setattr(type(files), "pipe_file", refuse)
    with pytest.raises(UserError, match="Access Denied"):
        Registry(uri).mirror.check_writable("m")


def test_a_version_that_is_pruned_while_it_is_copied(uri, push_to, other_host, monkeypatch):
    push_to(1), push_to(2)
    other_host()
    download, states = ObjectStore.download, [1]

    def prune_and_download(self, objects, folder, below=""):
        if states:
            states.pop()
            self.remove("m/1")
        download(self, objects, folder, below)

    monkeypatch.setattr(ObjectStore, "download", prune_and_download)
    assert Registry(uri).versions("m") == [2]


def test_leftovers_of_a_push_that_ends_meanwhile(uri, push_to, monkeypatch):
    push_to(1)
    fsspec.filesystem("memory").pipe_file(f"/{uri[9:]}/m/.pushing-1/variables/x", b"")

    def age(self, name):
        self.remove("m/.pushing-1")
        return self._call(self._fs.modified, name)

    monkeypatch.setattr(ObjectStore, "age", age)
    assert push_to(2) == (2, True)


def test_a_push_on_the_same_host_keeps_a_staging_folder_in_use(uri, push_to, monkeypatch):
    push_to(1)
    upload, state = ObjectStore.upload, {"done": False}

    def upload_and_interfere(self, folder, target):
        if not state["done"]:
            state["done"] = True
            assert push_to(5) == (2, True)
            assert (folder / "saved_model.pb").is_file()
        return upload(self, folder, target)

    monkeypatch.setattr(ObjectStore, "upload", upload_and_interfere)
    assert push_to(3) == (3, True)


def test_a_rollback_within_the_last_write_of_a_push(uri, push_to, other_host, monkeypatch):
    """The push has not seen the rollback: its version is withdrawn, and its number not reused."""
    push_to(1), push_to(2)
    copy, state = ObjectStore.copy, {"done": False}

    def copy_and_interfere(self, source, target):
        if target.endswith("saved_model.pb") and not state["done"]:
            state["done"] = True
            other_host()
            assert rollback(Registry(uri), "m").version == 4
            other_host("host")
        copy(self, source, target)

    monkeypatch.setattr(ObjectStore, "copy", copy_and_interfere)
    assert push_to(3) == (5, True)
    registry = Registry(uri)
    assert registry.versions("m") == [1, 2, 4, 5]
    assert registry.record("m", 5).withdrawn
    assert "m/3/regard.json" in objects(uri)


def test_objects_of_others_in_the_folder(uri, push_to, monkeypatch):
    push_to(1)
    files, root = fsspec.filesystem("memory"), "/" + uri.removeprefix("memory://")
    for name in ("m/20260101/a.tsv", f"m/{2**70}/x", "m/1//x", "x" * 300):
        files.store[f"{root}/{name}"] = files.store[f"{root}/m/1/saved_model.pb"]
    monkeypatch.setattr(mirrors, "MAX_AGE_SECONDS", -1.0)
    assert push_to(2) == (20260102, True)
    assert files.exists(f"{root}/m/20260101/a.tsv")
    files.pipe_file(f"{root}/m/{2**63 - 1}/x", b"")
    with pytest.raises(UserError, match="do not support higher versions"):
        push_to(3)


def test_another_process_removes_the_copy_while_a_version_is_pruned(uri, push_to, monkeypatch):
    push_to(1), push_to(2)
    remove = mirrors.RegistryMirror.remove

    def remove_and_pull(self, version):
        remove(self, version)
        Registry(uri)

    monkeypatch.setattr(mirrors.RegistryMirror, "remove", remove_and_pull)
    assert reasons(Registry(uri)) == ["live", None]
    assert Registry(uri).versions("m") == [2]


def test_the_start_of_a_recorded_training_is_complete_on_another_host(uri, push_to, other_host):
    push_to(1)
    first = registry_folder(uri) / "m" / "1"
    start = {"model": "m@1", "path": str(first), "digest": "d"}
    push_to(2, warm_start={"training": "key", "start": start})
    training = TrainingConfig.model_validate({"warm_start": {}})
    other_host()
    registry = Registry(uri)
    recorded = find_warm_start(training, registry, "m", "key")
    assert recorded == {**start, "path": str(registry.path("m", 1))}
    assert (registry.path("m", 1) / "variables").is_dir()
    registry.mirror.remove(registry.path("m", 1))
    assert find_warm_start(training, Registry(uri), "m", "key") == start
