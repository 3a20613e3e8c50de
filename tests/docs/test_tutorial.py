"""The tutorial runs what CI runs: the example of the end-to-end tests and of ``nox -s demo``, and its controls."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from ruamel.yaml import YAML

from .shell import commands
from .snippets import ROOT, blocks

TUTORIAL = ROOT / "docs/tutorial/first-run.md"
EXAMPLE = "docs/examples/qwen3-tiny-tp2-fsdp.yaml"
OUT = "runs/qwen3-tiny-tp2-fsdp"
SHOWN = [words for block in blocks(TUTORIAL) for words in commands(block.text)]


def test_it_takes_the_example_that_the_end_to_end_tests_and_the_demo_run() -> None:
    assert f'EXAMPLE = "{EXAMPLE}"' in (ROOT / "noxfile.py").read_text()
    assert f'EXAMPLE = ROOT / "{EXAMPLE}"' in (ROOT / "tests/e2e/conftest.py").read_text()
    calls = [words[1:] for words in SHOWN if words[0].endswith("xcfg")]
    assert [call[0] for call in calls] == ["plan", "run", "run", "show", "cube"]
    assert [call[1] for call in calls[:3]] == [EXAMPLE] * 3
    assert calls[1][2:] == ["--slice", "a0"] and calls[2][2:] == []
    assert calls[3][1] == calls[4][2] == OUT
    assert YAML(typ="safe").load((ROOT / EXAMPLE).read_text())["name"] == Path(OUT).name


def test_its_controls_are_cases_of_the_slice_that_ci_runs() -> None:
    content = YAML(typ="safe").load((ROOT / EXAMPLE).read_text())
    used = re.search(r"^SLICE = (\(.*\))$", (ROOT / "tests/e2e/conftest.py").read_text(), re.MULTILINE)
    assert used and used[1] == '("--slice", "ci")'
    assert set(content["slices"]["a0"]["cases"]) <= set(content["slices"]["ci"]["cases"])
    assert len(content["slices"]["a0"]["cases"]) == 2


def test_the_plan_lists_what_the_page_says(xcfg, monkeypatch) -> None:
    """The production pair, a case for each value of each axis that is not production's, and three explicit cases."""
    monkeypatch.chdir(ROOT)
    (plan,) = [words[1:] for words in SHOWN if words[1:2] == ["plan"]]
    document = json.loads(xcfg(*plan, "--json").out)
    content = YAML(typ="safe").load((ROOT / EXAMPLE).read_text())
    values = sum(len(set(values) - {content["baseline"][knob]}) for knob, values in content["axes"].items())
    assert len(content["cases"]) == 3
    assert len(document["cases"]) == 1 + values + 3
    names = {case["name"] for case in document["cases"]}
    (shown,) = [words for words in SHOWN if words[1:2] == ["show"]]
    assert shown[3] in names, shlex.join(shown)
