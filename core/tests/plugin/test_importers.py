"""Importers and file formats of other distributions, found through their entry points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xcfg.cli.recorded import AUTO, open_side
from xcfg.errors import EnvironmentFault, InvalidInput, PluginError
from xcfg.model.scorer import Role
from xcfg.plugin.registry import load_registry
from xcfg.scaffold.names import Names
from xcfg.scaffold.render import rendered

LINE = '{"uid": 7, "prompt": [1], "tokens": [3, 4], "sampler_logps": [-0.5, -1.0], "trainer_logps": [-0.25, null]}\n'


MODULE = "xcfg_mine_plugin"
"""The name that ``install`` gives to the plugin module of ``xcfg-mine``."""


def formats(body: str) -> str:
    return f"""
from xcfg.model.importer import FileFormatDescriptor
from xcfg.plugin import hookimpl
@hookimpl
def xcfg_file_formats():
    return [FileFormatDescriptor(id="mine", summary="", {body})]
"""


def test_the_importer_of_the_scaffold_reads_both_sides(install, tmp_path):
    made = rendered("importer", Names(name="mine"))
    plugin, importer = (made[Path(f"src/xcfg_mine/{name}.py")] for name in ("plugin", "importer"))
    both = f"{plugin}\n{importer}".replace("from __future__ import annotations\n", "")
    install("xcfg-mine", both.replace("xcfg_mine.importer:", f"{MODULE}:"))
    path = tmp_path / "step.jsonl"
    path.write_text(LINE)
    registry = load_registry()
    assert registry.owner("importer", "mine") == "xcfg-mine"
    sides = [open_side(path, role, AUTO, {}, registry) for role in (Role.ROLLOUT, Role.TRAINING)]
    assert [side.format.id for side in sides] == ["mine", "mine"]
    [rollout], [training] = (list(side.records()) for side in sides)
    assert (rollout.id, rollout.response_ids.tolist(), rollout.logprobs.tolist()) == ("7", [3, 4], [-0.5, -1.0])
    assert training.logprobs[0] == -0.25
    assert np.isnan(training.logprobs[1])
    assert training.place == "step.jsonl line 1"


def test_two_formats_that_open_one_suffix_are_refused(install, tmp_path):
    install("xcfg-mine", formats('suffixes=(".jsonl",), target="json:loads"'))
    path = tmp_path / "a.jsonl"
    path.write_text(LINE)
    with pytest.raises(PluginError, match=r"'jsonl' and 'mine' both open \.jsonl files"):
        open_side(path, Role.ROLLOUT, AUTO, {}, load_registry())


def test_a_format_without_its_library_names_the_pip_line(install, tmp_path):
    body = 'suffixes=(".own",), target="json:loads", requires=("no_such_library",), install="pip install own"'
    install("xcfg-mine", formats(body))
    path = tmp_path / "a.own"
    path.write_text("x")
    with pytest.raises(EnvironmentFault, match=r"no_such_library is not installed.*pip install own"):
        open_side(path, Role.ROLLOUT, AUTO, {}, load_registry())


def test_a_target_that_is_not_there_is_a_plugin_error(install, tmp_path):
    install("xcfg-mine", formats('suffixes=(".own",), target="json:nothing"'))
    path = tmp_path / "a.own"
    path.write_text("x")
    with pytest.raises(PluginError, match=r"xcfg-mine: json:nothing cannot be loaded"):
        open_side(path, Role.ROLLOUT, AUTO, {}, load_registry())


@pytest.mark.parametrize("body", ['suffixes=(), target="json:loads"', 'suffixes=("own",), target="json:loads"'])
def test_a_suffix_needs_its_dot(install, body):
    install("xcfg-mine", formats(body))
    assert "begin with a dot" in load_registry().failures["xcfg-mine"]


def test_an_unknown_layout_lists_the_formats(install, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"nothing": 1}\n')
    with pytest.raises(InvalidInput, match=r"nothing are of no known format.*generic.*verl.*--map"):
        open_side(path, Role.ROLLOUT, AUTO, {}, load_registry())
