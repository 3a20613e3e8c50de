"""Commands that plugins add: found by name alone, mounted beside core's."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from xcfg.cli.entry import main
from xcfg.testing.distributions import write_distribution

GREET = """
import click

@click.command()
@click.argument("name")
@click.option("--loud-voice", is_flag=True, envvar=None)
def greet(name, loud_voice):
    print(f"hello {name.upper() if loud_voice else name}")

not_a_command = 3
run = greet
"""


@pytest.fixture
def call(capsys):
    def called(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        return (int(leaving.value.code or 0), *capsys.readouterr())

    return called


def test_a_command_is_mounted_by_name(install, call, monkeypatch) -> None:
    install("xcfg-greeter", GREET, commands=["greet"])
    assert call("greet", "you") == (0, "hello you\n", "")
    monkeypatch.setenv("XCFG_GREET_LOUD_VOICE", "1")
    assert call("greet", "you")[1] == "hello YOU\n"


def test_it_is_listed_and_suggested_without_import(install, call) -> None:
    module = install("xcfg-greeter", GREET, commands=["greet"])
    rows = {row["name"]: row for row in json.loads(call("plugins", "list", "--json")[1])["plugins"]}
    assert rows["greeter"]["commands"] == ["greet"]
    assert rows["builtin"]["commands"] == []
    code, _, err = call("gret")
    assert code == 2 and "Did you mean 'greet'?" in err
    assert module not in sys.modules


@pytest.mark.parametrize("flags", [("-p", "no:greeter"), ("--no-plugins",)])
def test_a_plugin_left_out_has_no_command(install, call, flags) -> None:
    install("xcfg-greeter", GREET, commands=["greet"])
    assert call(*flags, "greet", "you")[0] == 2


def test_a_plugin_for_another_core_has_no_command(install, call) -> None:
    install("xcfg-greeter", GREET, commands=["greet"], requires=["xcfg>=99"])
    assert call("greet", "you")[0] == 2


def test_names_of_core_are_reserved(install, call) -> None:
    install("xcfg-greeter", GREET, commands=["run"])
    code, out, _ = call("run", "--help")
    assert code == 0 and "EXPERIMENT" in out.upper() and "loud" not in out


def test_one_name_of_two_distributions_names_both(install, call) -> None:
    for name in ("xcfg-one", "xcfg-two"):
        install(name, GREET, commands=["greet"])
    code, _, err = call("greet", "you")
    assert code == 4
    assert "xcfg-one and xcfg-two" in err
    assert call("-p", "no:two", "greet", "you")[0] == 0


@pytest.mark.parametrize(
    ("name", "source"), [("not_a_command", GREET), ("gone", GREET), ("greet", "raise ValueError(1)")]
)
def test_a_command_that_cannot_be_had_is_a_plugin_error(install, call, name, source) -> None:
    install("xcfg-broken", source, commands=[name])
    code, _, err = call(name)
    assert code == 4
    assert "xcfg-broken" in err


def test_a_backport_that_reads_metadata_instead_of_the_standard_library_changes_nothing(tmp_path) -> None:
    """``importlib_metadata`` takes over on import: dask and others import it, and its classes are its own."""
    pytest.importorskip("importlib_metadata")
    write_distribution(tmp_path, "xcfg-greeter", GREET, commands=["greet"])
    program = "import importlib_metadata; from xcfg.cli.entry import main; main(['greet', 'you'])"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    line = [sys.executable, "-c", program]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "hello you\n"), done.stderr
