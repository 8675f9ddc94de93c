"""A bucket of S3, by moto's server on loopback."""

import boto3
import httpx
import pytest
from changing_source import look, texts
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

from rag_lab.sources.config import read_connectors
from rag_lab.sources.listings import S3Source


@pytest.fixture(scope="module")
def server():
    served = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    served.start()
    host, port = served.get_host_and_port()
    yield f"http://{host}:{port}"
    served.stop()


@pytest.fixture
def bucket(server, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "of-a-test")
    httpx.post(f"{server}/moto-api/reset")
    client = boto3.client("s3", endpoint_url=server, region_name="us-east-1")
    client.create_bucket(Bucket="plant")
    yield lambda key, text: client.put_object(Bucket="plant", Key=key, Body=text)
    client.close()


def test_objects_become_documents_and_only_what_changed_is_fetched(tmp_path, server, bucket, monkeypatch):
    pdf = b"%PDF-1.4\n\xff\xfe bytes"
    for key, text in (("in/a.md", "one"), ("in/../b.md", "two"), ("in/c.PDF", pdf), ("in/d.zip", "z"), ("e.md", "e")):
        bucket(key, text)
    bucket("in/folder.md/", "")
    source = S3Source("plant", "in/", (".md", ".pdf"), server)
    assert look(tmp_path, source).new == 3
    (document,) = (tmp_path / "corpus").rglob("*.pdf")
    assert document.read_bytes() == pdf and document.parent == tmp_path / "corpus/plant"
    document.unlink()
    bucket("in/a.md", "one more")
    bucket("in/huge.md", "x" * 2**20)
    asked, contents = [], S3Source.contents
    monkeypatch.setattr(S3Source, "contents", lambda self, entries: contents(self, asked.extend(entries) or entries))
    found = look(tmp_path, source, max_mb=20)
    assert (found.new, found.changed, found.gone, found.same) == (1, 1, 0, 2)
    assert [entry.key for entry in asked] == ["in/a.md", "in/huge.md"]
    assert "1 MiB, more than max_mb" in look(tmp_path, source, max_mb=0.5).problems["in/huge.md"]
    assert "in/huge.md" not in [entry.key for entry in asked[2:]]  # it is not fetched for that


def test_a_listing_that_breaks_off_between_two_pages_deletes_nothing(tmp_path, server, bucket, monkeypatch):
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    for n in range(5):
        bucket(f"{n}.md", f"text {n}")
    source = S3Source("plant", endpoint_url=server)
    assert look(tmp_path, source).new == 5

    class Cut(S3Source):
        def entries(self, cursor, keys=()):
            for entry in super().entries(cursor):
                yield entry
                httpx.post(f"{server}/moto-api/reset")  # the bucket is gone when the second page is asked for

    found = look(tmp_path, Cut("plant", endpoint_url=server))
    assert found.gone == 0 and not found.whole and len(texts(tmp_path)) == 5
    assert f"{server} does not list the bucket 'plant': The specified bucket does not exist" in found.failure


def test_a_service_that_refuses_or_is_not_there_is_down_and_secrets_come_from_the_environment(
    tmp_path, server, bucket, monkeypatch
):
    httpx.post(f"{server}/moto-api/reset-auth", content=b"0")  # from now on keys are checked
    found = look(tmp_path, S3Source("plant", "", (), server, "AKIAOTHER", "wrong-secret"))
    httpx.post(f"{server}/moto-api/reset-auth", content=b"inf")
    assert "does not list the bucket 'plant': The AWS Access Key Id you provided does not exist" in found.failure
    assert "wrong-secret" not in str(found)
    nowhere = S3Source("plant", endpoint_url="http://127.0.0.1:1")
    assert "Could not connect to the endpoint URL" in look(tmp_path, nowhere).failure
    path = tmp_path / "connectors.yaml"
    options = "{bucket: plant, endpoint_url: '%s', access_key: AK, secret_key: %s}"
    text = f"connectors: [{{name: a, kind: s3, options: {options}}}]"
    path.write_text(text % (server, "mysecret"))
    with pytest.raises(Exception, match="a: access_key may hold a secret"):
        read_connectors(path)
    path.write_text((text % (server, "'${SECRET}'")).replace("AK,", "'${ACCESS}',"))
    monkeypatch.setenv("ACCESS", "AKIAMINE")
    monkeypatch.setenv("SECRET", "mine")
    bucket("a.md", "one")
    (source,) = (connector.open() for connector in read_connectors(path)[1])
    assert [entry.key for entry in source.entries("")] == ["a.md"] and source.secret_key == "mine"
