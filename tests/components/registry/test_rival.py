from components.registry.rival import LATEST, rival


def test_the_rival_is_the_given_one_or_the_newest_that_is_there_now(tmp_path):
    assert rival("", "") == ("", "")
    assert rival("/registry/m/3", "3") == ("/registry/m/3", "3")
    assert rival(str(tmp_path / "m"), LATEST) == ("", "")
    for version in (0, 2, 10):
        folder = tmp_path / "m" / str(version)
        folder.mkdir(parents=True)
        (folder / "saved_model.pb").write_bytes(b"graph")
        assert rival(str(tmp_path / "m"), LATEST) == (str(folder), str(version))
