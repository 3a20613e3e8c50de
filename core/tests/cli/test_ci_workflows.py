"""The workflow files: each command line in them is one the command line takes."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from xcfg.cli.main import cli

FILES = Path(__file__).parents[3] / "docs/examples/ci"


def _strings(node):
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for item in node.values():
            yield from _strings(item)
    elif isinstance(node, list):
        for item in node:
            yield from _strings(item)


def _lines(name):
    content = YAML(typ="safe").load((FILES / name).read_text())
    return [text for text in _strings(content) if "xcfg gate " in text or "xcfg report " in text]


@pytest.mark.parametrize(("name", "count"), [("github-actions.yml", 4), ("gitlab-ci.yml", 2)])
def test_their_commands_parse(name, count) -> None:
    lines = _lines(name)
    assert len(lines) == count
    for line in lines:
        words = shlex.split(line.replace("> report.txt || true", ""))
        called = words[1:]
        with cli.make_context("xcfg", list(called)) as context:
            found, command, arguments = cli.resolve_command(context, called)
            with command.make_context(found, list(arguments), parent=context) as inner:
                assert inner.params


def test_github_has_a_cpu_and_a_labelled_gpu_job_that_keep_their_results() -> None:
    content = YAML(typ="safe").load((FILES / "github-actions.yml").read_text())
    assert set(content["jobs"]) == {"cpu", "gpu"}
    assert "gpu" in content["jobs"]["gpu"]["runs-on"] and "label" in content["jobs"]["gpu"]["if"]
    for job in content["jobs"].values():
        upload = job["steps"][-1]
        assert upload["if"] == "always()"
        assert {"gate.xml", "report.txt", "report.html", "runs/gate/cube.zarr"} <= set(
            upload["with"]["path"].split("\n")
        )
        assert "strategy" not in job
