"""Standard output that is full or closed, and options given by environment variables."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from xcfg.cli.failure import classify


def call(*arguments: str, stdout: object = subprocess.PIPE, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "xcfg.cli", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env=environment, text=True, check=False)


@pytest.mark.parametrize("arguments", [("knobs", "list"), ("knobs", "list", "--json"), ("schema",)])
def test_a_reader_that_left_changes_no_verdict(arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = call(*arguments, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_full_disk_never_reads_as_drift(more: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = call("knobs", "list", *more, stdout=full)
    assert done.returncode == 7
    assert "no space left" in done.stderr and "Traceback" not in done.stderr


def test_an_option_by_its_variable() -> None:
    assert json.loads(call("contracts", "list", XCFG_CONTRACTS_LIST_JSON="1").stdout)["contracts"]
    failed = call("contracts", "show", "ws9", XCFG_CONTRACTS_SHOW_JSON="yes")
    assert json.loads(failed.stdout)["code"] == failed.returncode != 0
    wrong = call("run", "none.yaml", XCFG_RUN_TIMEOUT="soon")
    assert wrong.returncode == 2 and "soon" in wrong.stderr


def test_variables_that_name_no_option_are_ignored() -> None:
    done = call("contracts", "list", "--json", XCFG_PORT="tcp://10.0.0.1:80", XCFG_VERSION="1.2", XCFG_RUN="x")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_plugin_disabled_by_the_variable_is_listed_so() -> None:
    rows = json.loads(call("plugins", "list", "--json", XCFG_DISABLE_PLUGINS="builtin,torch").stdout)["plugins"]
    states = {row["name"]: row["state"] for row in rows}
    assert states["builtin"] == "available"
    assert states.get("torch", "disabled") == "disabled"


@pytest.mark.parametrize("code", [0, 1, None])
def test_an_exit_of_somebody_elses_code_is_an_internal_error(code: int | None) -> None:
    assert classify(SystemExit(code))[0] == 3


def test_a_place_that_may_not_be_written_is_a_usage_error() -> None:
    assert classify(PermissionError(13, "Permission denied", "/there"))[0] == 2
    assert classify(OSError(5, "Input/output error", "/there"))[0] == 3
