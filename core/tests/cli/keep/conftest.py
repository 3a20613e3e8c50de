"""Two finished folders of one experiment, made once and copied for each test, and an object store on loopback."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..searched import command
from ..small_experiment import EXPERIMENT, make_files


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``batch`` varies the batch size (two cases), ``dtype`` the rollout's dtype (two cases); they share the baseline.

    ``other`` is of an experiment with other tokens.
    """
    root = tmp_path_factory.mktemp("finished")
    make_files(root)
    for name, changes in {
        "batch": {"axes": {"batch.size": [8, 1]}},
        "dtype": {"axes": {"rollout.dtype": ["bfloat16", "float32"]}},
        "other": {"axes": {}, "tokens": {"sample": {"prompts": "prompts.jsonl", "max_new_tokens": 3}}},
    }.items():
        text = json.dumps({**EXPERIMENT, "cases": [], "slices": {}, **changes})
        (root / f"{name}.json").write_text(text)
        command("run", root / f"{name}.json", "--allow-fake", "--out", root / name)
    return root


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of one of the folders, free to be damaged."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(finished / name, tmp_path / name))

    return copy


class Bucket:
    """A server with one bucket. ``up`` starts it (again, with what it held) and points the AWS variables at it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.patch = patch
        self.url = "s3://results/runs/small"
        self.clients: dict[str, Any] = {}
        self.up()
        self.client().create_bucket(Bucket="results")

    def up(self) -> None:
        from moto.server import ThreadedMotoServer

        self.server: Any = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.server.start()
        host, port = self.server.get_host_and_port()
        self.endpoint = f"http://{host}:{port}"
        variables = {"ENDPOINT_URL": self.endpoint, "REGION": "us-east-1"}
        for name, value in {**variables, "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret"}.items():
            self.patch.setenv(f"AWS_{name}", value)

    def client(self) -> Any:
        """One for each server: making one reads megabytes of service descriptions."""
        import boto3

        if self.endpoint not in self.clients:
            self.clients[self.endpoint] = boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1")
        return self.clients[self.endpoint]

    def post(self, path: str, data: bytes = b"") -> None:
        place = f"{self.endpoint}/moto-api/{path}"
        with urllib.request.urlopen(urllib.request.Request(place, data, {"Content-Type": "text/plain"})) as answer:
            assert answer.status == 200

    def content(self) -> dict[str, bytes]:
        """Every object below the URL by its name."""
        found, client = {}, self.client()
        for page in client.get_paginator("list_objects_v2").paginate(Bucket="results"):
            for item in page.get("Contents", ()):
                body = client.get_object(Bucket="results", Key=item["Key"])["Body"].read()
                found[item["Key"].removeprefix("runs/small/")] = body
        return found


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    pytest.importorskip("moto.server")
    pytest.importorskip("obstore")
    made = Bucket(monkeypatch)
    yield made
    made.server.stop()
    made.up()
    made.post("reset")
    made.server.stop()


def tree(folder: Path) -> dict[str, bytes]:
    """Every file of a folder but the lock, by its name."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".lock"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="session")
def content_of() -> Callable[[Path], dict[str, bytes]]:
    return tree
