"""Files an experiment names: model directories, prompts, recorded tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from xcfg.model import codec
from xcfg.model.json import Json
from xcfg.planner.problem import Problem

_RELATIVE = "relative paths start from the folder of the experiment file"
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def check_files(data: dict[str, Json], root: Path) -> list[Problem]:
    """Whatever is named, missing or unreadable below ``root``."""
    problems = [problem for path, text in _checkpoints(data) for problem in checkpoint_problems(path, root / text)]
    derived = data.get("derived")
    for name, text in derived.items() if isinstance(derived, dict) else ():
        problems += checkpoint_problems(("derived", name), root / text) if isinstance(text, str) else ()
    tokens = data.get("tokens")
    if isinstance(tokens, dict):
        sample = tokens.get("sample")
        prompts = sample.get("prompts") if isinstance(sample, dict) else None
        problems += _lines(("tokens", "sample", "prompts"), prompts, root, "prompts")
        problems += _lines(("tokens", "recorded"), tokens.get("recorded"), root, "recorded tokens")
    return problems


def checkpoint_problems(path: codec.Path, folder: Path) -> Iterator[Problem]:
    """What keeps ``folder`` from being a Hugging Face model directory with a readable tokenizer."""
    if not folder.is_dir():
        hint = f"{_RELATIVE}; models are not downloaded, give a local folder"
        yield Problem(path=path, message=f"no model directory at {folder}", hint=hint)
        return
    if not (folder / "config.json").is_file():
        hint = "a Hugging Face model directory has one"
        yield Problem(path=path, message=f"{folder} has no config.json", hint=hint)
    for name in ("config.json", *_TOKENIZER):
        if (folder / name).is_file():
            yield from _json_object(path, folder / name)


def _json_object(path: codec.Path, file: Path) -> Iterator[Problem]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        yield Problem(path=path, message=f"{file} cannot be read as JSON: {error}")
        return
    if not isinstance(content, dict):
        yield Problem(path=path, message=f"{file} is JSON but no object")


def _checkpoints(data: dict[str, Json]) -> Iterator[tuple[codec.Path, str]]:
    """Every checkpoint's path with its place: of the experiment, of its sides, of its cases' sides."""
    holders: list[tuple[codec.Path, Json]] = [((), data), *(((role,), data.get(role)) for role in _ROLES)]
    cases = data.get("cases")
    for index, case in enumerate(cases if isinstance(cases, list) else []):
        if isinstance(case, dict):
            holders += [(("cases", index, role), case.get(role)) for role in _ROLES]
    for path, holder in holders:
        checkpoint = holder.get("checkpoint") if isinstance(holder, dict) else None
        for name in ("path", "derived_from"):
            text = checkpoint.get(name) if isinstance(checkpoint, dict) else None
            if isinstance(text, str) and (text or name == "path"):
                yield (*path, "checkpoint", name), text


_ROLES = ("rollout", "training")


def _lines(path: codec.Path, text: Json, root: Path, what: str) -> Iterator[Problem]:
    if not isinstance(text, str) or not text:
        return
    file = root / text
    if not file.is_file():
        yield Problem(path=path, message=f"no {what} file at {file}", hint=_RELATIVE)
    elif not file.stat().st_size:
        yield Problem(path=path, message=f"the {what} file {file} is empty")
