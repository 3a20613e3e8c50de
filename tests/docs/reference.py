"""What there is to document, found without the code that writes the reference: sources are read, plugins are asked."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import click

from xcfg.cli.main import cli

from .snippets import ROOT

SOURCES = ("core/src", "plugins/*/src", "kernels/*/src")
_SCHEMA = re.compile(r"\bxcfg\.[a-z.-]+/[0-9]+")
_DOCUMENT = re.compile(r"\b(?:answer_)?document\(\s*\"([a-z.]+)\"")
_LISTS = re.compile(r"\b_group\(\s*\"[a-z]+\",\s*\"([a-z]+)\"")
"""The groups of commands that list and show what is registered, each with a document of its name."""


def sources() -> Iterator[Path]:
    """Every Python file of the distributions."""
    for pattern in SOURCES:
        for folder in ROOT.glob(pattern):
            yield from folder.rglob("*.py")


def schemas() -> set[str]:
    """Every schema that the code writes or reads: written out, or the name of a command's document."""
    found: set[str] = set()
    for path in sources():
        text = path.read_text(encoding="utf-8")
        found |= set(_SCHEMA.findall(text))
        found |= {f"xcfg.{name}/1" for name in (*_DOCUMENT.findall(text), *_LISTS.findall(text))}
    return found


def commands(group: click.Group = cli, path: tuple[str, ...] = ("xcfg",)) -> Iterator[tuple[str, click.Command]]:
    """Every command below ``group`` with the words that call it, plugins' commands included."""
    context = cli.make_context("xcfg", ["plugins"])
    names = group.list_commands(context)
    if group is cli:
        names = [*names, *(entry.name for entry in entry_points(group="xcfg.commands"))]
    for name in names:
        command = group.get_command(context, name)
        assert command is not None, name
        words = (*path, name)
        yield " ".join(words), command
        if isinstance(command, click.Group):
            yield from commands(command, words)


def knobs() -> set[str]:
    """The names of the knobs that the installed plugins of this repository return."""
    found: set[str] = set()
    for entry in entry_points(group="xcfg"):
        hook = getattr(importlib.import_module(entry.value), "xcfg_knobs", None)
        found |= {knob.name for knob in hook()} if hook else set()
    return found


def hooks() -> set[str]:
    """The functions of hookspec.py that are marked as hooks."""
    tree = ast.parse((ROOT / "core/src/xcfg/plugin/hookspec.py").read_text())
    functions = (item for item in tree.body if isinstance(item, ast.FunctionDef))
    return {item.name for item in functions if any(ast.unparse(mark) == "hookspec" for mark in item.decorator_list)}


def constants(file: str, name: str) -> dict[str, object]:
    """The values that a class of a source file assigns."""
    tree = ast.parse((ROOT / file).read_text())
    (found,) = (item for item in tree.body if isinstance(item, ast.ClassDef) and item.name == name)
    assigned = [item for item in found.body if isinstance(item, ast.Assign)]
    return {ast.unparse(item.targets[0]): ast.literal_eval(item.value) for item in assigned}
