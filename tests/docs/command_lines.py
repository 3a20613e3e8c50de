"""What is wrong with a command that a page shows; nothing where it would be taken."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
from packaging.requirements import Requirement

from xcfg.cli.main import cli

from .snippets import ROOT

OTHERS = frozenset({"export", "jq", "pytest"})
"""Commands of the shell and of the system, whose arguments are not looked at."""
_OURS = re.compile(r"(\./)?(docs|tests|core|plugins|kernels)/\S+")
_PLACEHOLDER = re.compile(r"[A-Z\[]")
_MADE = re.compile(r"\./xcfg-my-[a-z-]+\[([a-z,]+)\]")
"""A distribution that `xcfg init` made for the reader, with extras."""
_PIP_VALUES = {"--target", "--requirement", "--extra-index-url"}


def fault(words: list[str], folder: Path) -> str:
    """What is wrong with ``words``, read on a page in ``folder``; empty where nothing is."""
    program, arguments = Path(words[0]).name, words[1:]
    try:
        if program == "xcfg":
            parse(arguments)
            faults = _absent(arguments)
        elif program == "nox":
            faults = [f"no session {name}" for name in arguments[arguments.index("-s") + 1 :] if name not in sessions()]
        elif program == "pip":
            faults = list(_pip(arguments))
        elif program == "python":
            faults = list(_python(arguments, folder))
        else:
            faults = [] if program in OTHERS else [f"an unknown program {program}"]
    except click.ClickException as error:
        return error.format_message()
    return "; ".join(faults)


def parse(arguments: list[str]) -> None:
    """Parse ``arguments`` down to the innermost command, as a call does. Raises click's UsageError."""
    given = [sys.executable if word.startswith("/envs/") and word.endswith("/python") else word for word in arguments]
    command: click.Command = cli
    context, rest = cli.make_context("xcfg", list(given)), given
    while isinstance(command, click.Group):
        _, inner, rest = command.resolve_command(context, rest)
        assert inner is not None
        command, context = inner, inner.make_context(inner.name, list(rest), parent=context)


def known(words: list[str]) -> str:
    """What is wrong with a mention such as ``xcfg run --retry N``, whose arguments may be missing or placeholders."""
    command: click.Command = cli
    context = cli.make_context("xcfg", ["plugins"])
    for word in words:
        if word.startswith("-"):
            if not any(word in (*item.opts, *item.secondary_opts) for item in command.get_params(context)):
                return f"{command.name} has no option {word}"
        elif isinstance(command, click.Group) and not _PLACEHOLDER.match(word):
            inner = command.get_command(context, word)
            if inner is None:
                return f"no command {word}"
            command = inner
    return ""


def sessions() -> set[str]:
    """The names of noxfile.py's sessions."""
    return set(re.findall(r"^@nox\.session\ndef (\w+)\(", (ROOT / "noxfile.py").read_text(), re.MULTILINE))


def _absent(arguments: list[str]) -> list[str]:
    """Files of the repository that are named and are not there."""
    return [f"{word} is not there" for word in arguments if _OURS.fullmatch(word) and not (ROOT / word).exists()]


def _python(arguments: list[str], folder: Path) -> Iterator[str]:
    if arguments[:2] == ["-m", "pip"]:
        yield from _pip(arguments[2:])
    elif arguments[0] == "-m":
        if importlib.util.find_spec(arguments[1]) is None:
            yield f"no module {arguments[1]}"
    elif arguments[0] != "-c" and not any((base / arguments[0]).is_file() for base in (ROOT, folder)):
        yield f"{arguments[0]} is not there"
    yield from _absent(arguments[1:])


def _pip(arguments: list[str]) -> Iterator[str]:
    if arguments[0] != "install":
        yield f"pip {arguments[0]}"
    extras = distributions()
    previous = ""
    for word in arguments[1:]:
        if made := _MADE.fullmatch(word):
            if missing := set(made[1].split(",")) - scaffolded():
                yield f"{word}: a new distribution has no extra {', '.join(sorted(missing))}"
        elif word.startswith("./"):
            if not (ROOT / word / "pyproject.toml").is_file():
                yield f"{word} is no distribution"
        elif not word.startswith("-") and previous not in _PIP_VALUES:
            asked = Requirement(word)
            if asked.name.startswith("xcfg"):
                missing = asked.extras - extras.get(asked.name, set())
                if asked.name not in extras or missing:
                    yield f"{word}: no such distribution or extra"
        previous = word


def distributions() -> dict[str, set[str]]:
    """The distributions of this repository with their extras."""
    projects = [tomllib.loads(path.read_text())["project"] for path in _projects()]
    return {project["name"]: set(project.get("optional-dependencies", {})) for project in projects}


def scaffolded() -> set[str]:
    """The extras that `xcfg init` gives to a distribution of any kind."""
    folders = (ROOT / "core/src/xcfg/scaffold/templates").glob("*/pyproject.toml.in")
    names = (re.findall(r"^(\w+) = \[", path.read_text().partition("optional-")[2], re.MULTILINE) for path in folders)
    return {name for found in names for name in found}


def _projects() -> Iterator[Path]:
    for pattern in ("core", "plugins/*", "kernels/*"):
        yield from ROOT.glob(f"{pattern}/pyproject.toml")
