"""``--map`` never takes a name that means nothing: an option passed over in silence would leave a false pass."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def files(tmp_path):
    record = {"id": "a", "response_ids": [1, 2], "logprobs": [-0.5, -1.0], "other": [-0.5, -3.0]}
    paths = [tmp_path / name for name in ("rollout.jsonl", "training.jsonl")]
    for path in paths:
        path.write_text(json.dumps(record) + "\n")
    return paths


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("training.logprob=other", "unknown field 'logprob'"),
        ("tempreature=other", "unknown field 'tempreature'"),
        ("train.logprobs=other", "unknown side 'train'"),
        ("nothing.logprobs=other", "unknown side 'nothing'"),
    ],
)
def test_an_unknown_name_is_refused(xcfg, files, option, said):
    done = xcfg("compare", *files, "--dtype", "bfloat16", "--map", option, "--json")
    assert done.code == 2
    assert said in done.document["errors"][0]["message"]
    assert done.document["errors"][0]["where"] == "--map"


def test_the_right_name_finds_the_drift(xcfg, files):
    done = xcfg("compare", *files, "--dtype", "bfloat16", "--map", "training.logprobs=other", "--json")
    assert (done.code, done.document["metrics"]["max_abs_dlogp"]) == (1, 2.0)


def test_fields_of_a_framework_are_not_renamed(xcfg, files):
    done = xcfg("compare", *files, "--format", "verl", "--map", "logprobs=other", "--json")
    assert done.code == 2
    assert "not of verl" in done.document["errors"][0]["message"]
