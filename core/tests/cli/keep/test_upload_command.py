"""``xcfg cube upload`` to a server on loopback, and reading what was uploaded."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from xcfg.cube.objects import Objects

# every upload ends with the object that makes the cube one
ROOT = "cube.zarr/zarr.json"


def sealed(folder):
    return {path.relative_to(folder).as_posix() for path in folder.glob("sides/*/*/COMPLETE")}


def results(content):
    """What is written once."""
    return {name: data for name, data in content.items() if name.startswith(("sides/", "tokens/", "launches/"))}


def test_everything_arrives_and_is_read_where_it_is(finished, bucket, xcfg, content_of):
    folder = finished / "batch"
    done = xcfg("cube", "upload", folder, bucket.url, "--json")
    assert done.code == 0, done.err
    there, here = bucket.content(), content_of(folder)
    assert done.document["sent"] == len(there) and done.document["present"] == 0
    assert done.document["bytes"] == sum(map(len, there.values()))
    assert {name: here[name] for name in there} == there
    left = {name for name in here.keys() - there.keys() if not name.startswith("launches/")}
    assert left == {"checkpoints.json"}
    assert {name for name in there if name.startswith("launches/")} == {
        path.relative_to(folder).as_posix() for path in folder.glob("launches/*/exit.json")
    }

    local = xcfg("cube", "query", folder, "--where", "batch.size == 1", "--json").document["rows"]
    assert xcfg("cube", "query", bucket.url, "--where", "batch.size == 1", "--json").document["rows"] == local
    assert xcfg("cube", "query", f"{bucket.url}/cube.zarr", "--where", "batch.size == 1", "--json").code == 0
    found = xcfg("cube", "verify", bucket.url, "--json")
    assert (found.code, found.document["cube"], found.document["counts"]["attempts"]) == (0, "same", 4)


def test_a_second_upload_sends_only_what_is_missing(finished, copied, bucket, xcfg):
    folder = copied("batch")
    xcfg("cube", "upload", folder, bucket.url)
    first = bucket.content()
    again = xcfg("cube", "upload", folder, bucket.url, "--json").document
    assert (again["sent"], again["present"]) == (0, len(first))

    xcfg("cube", "merge", folder, finished / "dtype")
    grown = xcfg("cube", "upload", folder, bucket.url, "--json").document
    there = bucket.content()
    assert results(first).items() <= results(there).items()
    assert sealed(folder) <= there.keys() and len(sealed(folder)) == 7
    sent = {name for name, data in there.items() if first.get(name) != data}
    assert sent <= {name for name in there if name not in results(first)}
    assert grown["sent"] >= len(sent)
    assert xcfg("cube", "verify", bucket.url).code == 0
    assert len(xcfg("cube", "query", bucket.url, "--json").document["rows"]) == 3


def test_another_experiment_is_refused_and_nothing_changes(finished, bucket, xcfg):
    xcfg("cube", "upload", finished / "batch", bucket.url)
    before = bucket.content()
    done = xcfg("cube", "upload", finished / "other", bucket.url, "--json")
    assert done.code == 2 and "max_new_tokens" in done.document["errors"][0]["message"]
    assert bucket.content() == before


def test_attempts_of_another_folder_are_not_overwritten(finished, copied, bucket, xcfg):
    """Both folders have a first attempt of the baseline's sides, made in different processes."""
    xcfg("cube", "upload", finished / "batch", bucket.url)
    before = bucket.content()
    done = xcfg("cube", "upload", finished / "dtype", bucket.url, "--json")
    assert done.code == 2 and "xcfg cube merge" in done.document["errors"][0]["hint"]
    assert bucket.content() == before

    together = copied("batch")
    assert xcfg("cube", "merge", together, finished / "dtype").code == 0
    assert xcfg("cube", "upload", together, bucket.url).code == 0
    assert results(before).items() <= results(bucket.content()).items()


def test_other_content_under_a_name_that_is_written_once_stays(finished, bucket, xcfg):
    xcfg("cube", "upload", finished / "batch", bucket.url)
    name = sorted(name for name in bucket.content() if name.endswith("samples.safetensors"))[0]
    body = bytearray(bucket.content()[name])
    body[-1] ^= 1
    bucket.client().put_object(Bucket="results", Key=f"runs/small/{name}", Body=bytes(body))
    before = bucket.content()
    done = xcfg("cube", "upload", finished / "batch", bucket.url, "--json")
    assert done.code == 2 and done.document["errors"][0]["where"] == f"{bucket.url}/{name}"
    assert bucket.content() == before
    found = xcfg("cube", "verify", bucket.url, "--json")
    assert found.code == 6 and name in {item["path"] for item in found.document["problems"]}


def test_a_prefix_with_something_else_is_refused(finished, bucket, xcfg):
    bucket.client().put_object(Bucket="results", Key="runs/small/thesis.tex", Body=b"mine")
    assert xcfg("cube", "upload", finished / "batch", bucket.url).code == 2
    assert bucket.content() == {"thesis.tex": b"mine"}


def test_a_damaged_folder_is_not_uploaded(copied, bucket, xcfg):
    folder = copied("batch")
    spoilt = sorted(folder.glob("sides/*/attempt-0001/timing.json"))[0]
    spoilt.write_text("{}")
    done = xcfg("cube", "upload", folder, bucket.url, "--json")
    assert done.code == 6 and done.document["errors"][0]["where"] == str(spoilt)
    assert bucket.content() == {}


@pytest.mark.parametrize("after", [1, 5, 20, 45, 80, -1])
def test_a_server_that_goes_away_leaves_nothing_claimed_complete(finished, bucket, xcfg, monkeypatch, after):
    """It is stopped before one of the writes, the last of all where ``after`` is -1; then the upload goes on."""
    folder = finished / "batch"
    original, count = Objects.put_new, 0

    def put_new(self, key, data):
        nonlocal count
        count += 1
        if count == after or (after == -1 and key == ROOT):
            bucket.server.stop()
        return original(self, key, data)

    monkeypatch.setattr(Objects, "put_new", put_new)
    done = xcfg("cube", "upload", folder, bucket.url, "--json")
    assert done.code == 7, done.out
    assert done.document["status"] == "error" and bucket.url in done.document["errors"][0]["where"]
    monkeypatch.setattr(Objects, "put_new", original)

    bucket.up()
    there = bucket.content()
    assert ROOT not in there
    assert xcfg("cube", "query", bucket.url).code == 6
    for name in sealed(folder) & there.keys():  # a seal is there only with all it names
        files = json.loads(there[name])["files"]
        assert {f"{name.removesuffix('COMPLETE')}{item}" for item in files} <= there.keys()
    assert xcfg("cube", "upload", folder, bucket.url).code == 0
    assert there.items() <= bucket.content().items()
    assert xcfg("cube", "verify", bucket.url).code == 0


def test_wrong_credentials(finished, bucket, xcfg):
    bucket.post("reset-auth", b"0")
    try:
        done = xcfg("cube", "upload", finished / "batch", bucket.url, "--json")
        assert done.code == 7, done.out
        error = done.document["errors"][0]
        assert "access refused" in error["message"] and "AWS_SECRET_ACCESS_KEY" in error["hint"]
        assert xcfg("cube", "query", bucket.url).code == 7
    finally:
        bucket.post("reset-auth", b"inf")
    assert bucket.content() == {}


@pytest.mark.parametrize("command", ["upload", "query", "verify", "export", "merge"])
def test_a_missing_bucket(finished, copied, bucket, xcfg, tmp_path, command):
    url = "s3://nowhere/runs/small"
    arguments = {
        "upload": (finished / "batch", url),
        "export": (url, tmp_path / "a.csv"),
        "merge": (copied("batch"), url),
    }.get(command, (url,))
    done = xcfg("cube", command, *arguments, "--json")
    assert done.code == 7, done.out
    assert "no such bucket" in done.document["errors"][0]["message"]


@pytest.mark.parametrize("url", ["s3://", "nope://x/y", "memory:///", "runs/x"])
def test_what_is_no_address(finished, xcfg, url):
    pytest.importorskip("obstore")
    assert xcfg("cube", "upload", finished / "batch", url).code == 2


def test_a_name_that_leaves_the_folder_is_not_followed(finished, bucket, xcfg, tmp_path):
    xcfg("cube", "upload", finished / "batch", bucket.url)
    bucket.client().put_object(Bucket="results", Key="runs/small/sides/../../../../escaped", Body=b"x")
    assert xcfg("cube", "verify", bucket.url).code in (6, 7)
    assert not list(tmp_path.rglob("escaped"))


def test_no_run_at_the_address(bucket, xcfg):
    assert xcfg("cube", "verify", bucket.url).code == 2
    assert xcfg("cube", "query", bucket.url).code == 6


def test_without_obstore_the_line_to_install_is_named(finished, xcfg, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    done = xcfg("cube", "upload", finished / "batch", "s3://results/x", "--json")
    assert done.code == 7
    assert done.document["errors"][0]["hint"] == 'python -m pip install "xcfg[s3]"'


def test_a_folder_can_stand_for_a_store(finished, copied, xcfg, tmp_path):
    pytest.importorskip("obstore")
    (tmp_path / "store").mkdir()
    url = f"file://{tmp_path}/store"
    folder = copied("batch")
    assert xcfg("cube", "upload", folder, url).code == 0
    assert xcfg("cube", "verify", url).code == 0
    xcfg("cube", "merge", folder, finished / "dtype")
    assert xcfg("cube", "upload", folder, url).code == 0
    assert len(xcfg("cube", "query", url, "--json").document["rows"]) == 3


def test_results_at_an_address_are_merged(finished, copied, bucket, xcfg):
    folder = copied("batch")
    xcfg("cube", "upload", finished / "dtype", bucket.url)
    done = xcfg("cube", "merge", folder, bucket.url, "--json")
    assert (done.code, len(done.document["taken"])) == (0, 3)
    assert xcfg("cube", "verify", folder).code == 0
    origins = folder.glob("launches/*/origin.json")
    assert {json.loads(path.read_bytes())["folder"] for path in origins} == {bucket.url}


def test_a_recorded_failure_travels_with_its_verdict(copied, bucket, xcfg):
    """Without it the cube made from a copy would have another status."""
    folder = copied("batch")
    side = sorted(folder.glob("sides/*"))[0]
    shutil.rmtree(side / "attempt-0001")
    (side / "attempt-0001").mkdir()
    failure = {"status": "scorer_error", "reason": "died", "logs": []}
    record = {"schema": "xcfg.attempt/1", "failure": failure, "launch": "0001"}
    (side / "attempt-0001/failure.json").write_text(json.dumps(record))
    assert xcfg("cube", "rebuild", folder).code == 0
    assert xcfg("cube", "upload", folder, bucket.url).code == 0
    found = xcfg("cube", "verify", bucket.url, "--json")
    assert (found.code, found.document["counts"]["failures"]) == (0, 1)
