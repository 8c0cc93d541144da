"""The local folders of a store are those of the launcher (LocalPathForURI in launcher_v2.go)."""

import pytest

from pipeline.kubeflow.storage import VARIABLE, local_path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("gs://bucket/a/b", "/gcs/bucket/a/b"),
        ("minio://mlpipeline/v2/artifacts/x", "/minio/mlpipeline/v2/artifacts/x"),
        ("s3://bucket/a", "/s3/bucket/a"),
        ("/a/local/folder", "/a/local/folder"),
        ("https://example.org/a", "https://example.org/a"),
        ("", ""),
    ],
)
def test_where_a_uri_lies(uri, path):
    assert local_path(uri, {}) == path


def test_the_folders_may_lie_elsewhere():
    assert local_path("gs://b/p", {VARIABLE: "/tmp/pod"}) == "/tmp/pod/gcs/b/p"
