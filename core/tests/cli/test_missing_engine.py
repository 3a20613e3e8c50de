"""A plugin whose engine is not installed: the pip line is told, the other side is kept, nothing reads as drift."""

import json
import os
import subprocess
import sys

from xcfg.testing.distributions import write_distribution

PLUGIN = """
from xcfg.model.scorer import Role, ScorerDescriptor
from xcfg.plugin import hookimpl


@hookimpl
def xcfg_scorers():
    return [
        ScorerDescriptor(
            id="ghost",
            summary="an engine that is nowhere",
            target="nowhere:Scorer",
            roles=(Role.TRAINING,),
            requires=("engine_that_is_nowhere",),
            install="pip install 'xcfg-ghost[cpu]'",
            fake=True,
        )
    ]
"""


def test_the_pip_line_is_told_and_the_other_side_is_kept(write, tmp_path) -> None:
    write_distribution(tmp_path / "site", "xcfg-ghost", PLUGIN)
    experiment = write(
        axes={}, cases=[], slices={}, training={"scorer": "ghost"}, baseline={"rollout.dtype": "bfloat16"}
    )
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "xcfg.cli",
        "-q",
        "run",
        str(experiment),
        "--allow-fake",
        "--out",
        str(out),
        "--json",
    ]
    command += ["--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    document = json.loads(done.stdout)
    assert (document["status"], done.returncode) == ("environment_error", 7), done.stderr
    reason = document["cases"][0]["reason"]
    assert "engine_that_is_nowhere is not installed" in reason and "pip install 'xcfg-ghost[cpu]'" in reason
    assert len(list(out.glob("sides/*/attempt-0001/COMPLETE"))) == 1
