from __future__ import annotations

import json
import subprocess
import sys

import pytest

from xcfg.errors import InvalidInput, PluginError
from xcfg.model.codec import dump_json
from xcfg.plugin.describe import describe, described_registry, main, read_description
from xcfg.plugin.registry import load_registry

BROKEN = """
from xcfg.plugin import hookimpl
from xcfg.model.scorer import Role, ScorerDescriptor

@hookimpl
def xcfg_scorers():
    return [ScorerDescriptor(id="lost", summary="s", target="m:C", roles=(Role.ROLLOUT,))]

@hookimpl
def xcfg_knobs():
    raise OSError("disk")
"""


def test_descriptors_and_failures_survive_the_way_through_json(install):
    install("xcfg-bad", BROKEN)
    registry = load_registry()
    description = describe(registry)
    read = read_description(dump_json(description))
    assert read == description
    assert read.failures == {"xcfg-bad": "xcfg_knobs raised OSError: disk"}


def test_another_interpreters_registry_answers_alike(install):
    install("xcfg-skewed", BROKEN, requires=["xcfg>=999"])
    registry = load_registry(allow_fake=True)
    other = described_registry(read_description(dump_json(describe(registry))), allow_fake=True)
    assert other.knobs() == registry.knobs()
    assert other.scorers() == registry.scorers()
    assert other.backends() == registry.backends()
    assert other.materializers("fake") == registry.materializers("fake")
    assert other.contract("ws1") == registry.contract("ws1")
    assert other.owner("scorer", "fake") == "xcfg"
    assert other.failures == registry.failures
    with pytest.raises(PluginError, match="needs xcfg>=999"):
        other.scorer("skewed")


def test_the_module_prints_one_document():
    command = [sys.executable, "-m", "xcfg.plugin.describe", "--no-plugins"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["schema"] == "xcfg.describe/1"
    assert "rollout.dtype" in described_registry(read_description(done.stdout)).knobs()


def test_disabled_plugins_are_left_out(install, capsys, monkeypatch):
    module = install("xcfg-bad", BROKEN)
    assert main(["--disable", "bad"]) == 0
    monkeypatch.setenv("XCFG_DISABLE_PLUGINS", "bad")
    assert main([]) == 0
    assert module not in sys.modules
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


@pytest.mark.parametrize("text", ["{}", "[]", '{"schema": "xcfg.describe/2", "plugins": []}', "nonsense"])
def test_anything_else_is_refused(text):
    with pytest.raises(InvalidInput):
        read_description(text)
