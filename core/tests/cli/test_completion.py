"""Completion as a shell asks for it, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def complete(words: str, place: int) -> list[str]:
    environment = {**os.environ, "_XCFG_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(place)}
    done = subprocess.run(
        [sys.executable, "-m", "xcfg.cli"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_and_options_are_completed() -> None:
    assert complete("xcfg se", 1) == ["search"]
    assert {"run", "report"} <= set(complete("xcfg r", 1))
    assert complete("xcfg run --tim", 2) == ["--timeout"]
    assert complete("xcfg cube q", 2) == ["query"]
    assert complete("xcfg run --only ", 3) == ["rollout", "training"]


@pytest.mark.parametrize(
    ("shell", "words"), [("bash", "complete -o"), ("zsh", "compdef"), ("fish", "complete --no-files")]
)
def test_the_script_of_each_shell(xcfg, shell, words) -> None:
    done = xcfg("completion", shell)
    assert done.code == 0
    assert words in done.out and "_XCFG_COMPLETE" in done.out
    assert xcfg("completion", shell, "--json").document["script"].strip() == done.out.strip()


def test_a_shell_reads_what_was_printed(xcfg, tmp_path) -> None:
    script = tmp_path / "xcfg.bash"
    script.write_text(xcfg("completion", "bash").out)
    done = subprocess.run(
        ["bash", "-c", f". {script} && complete -p xcfg"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "_xcfg_completion" in done.stdout


def test_an_unknown_shell_is_usage(xcfg) -> None:
    assert xcfg("completion", "tcsh").code == 2
