"""Writes the reference pages of knobs, hooks, metrics, statuses and exit codes from the installed code."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path

from sphinx.application import Sphinx

GENERATED = "reference/generated"


def page(folder: Path, name: str, lines: Iterable[str]) -> str:
    """Write one Markdown page where its text changed; returns its document name."""
    text = "\n".join(lines) + "\n"
    target = folder / f"{name}.md"
    if not target.exists() or target.read_text() != text:
        target.write_text(text)
    return name


def table(headings: list[str], rows: Iterable[list[str]]) -> list[str]:
    """A Markdown table."""
    escape = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return [
        "| " + " | ".join(headings) + " |",
        "|" + "---|" * len(headings),
        *("| " + " | ".join(row) + " |" for row in escape),
    ]


def index(title: str, intro: str, names: list[str]) -> list[str]:
    """An index page with its table of contents."""
    return [f"# {title}", "", intro, "", "```{toctree}", ":maxdepth: 1", "", *names, "```"]


def knobs(folder: Path) -> str:
    """One page a knob, with who can apply it."""
    from xcfg.plugin.registry import load_registry

    registry = load_registry(allow_fake=True)
    names = []
    for name, knob in sorted(registry.knobs().items()):
        applied = []
        for scorer in sorted(registry.scorers()):
            found = registry.materializer(name, scorer)
            if found is None:
                continue
            values = "no meaning here" if found.inapplicable else ", ".join(map(str, found.values)) or "whole domain"
            applied.append([f"`{scorer}`", found.lifecycle.value, values, found.inapplicable or found.reason])
        facts = [
            ["source class", knob.source_class.value],
            ["lifecycle", knob.lifecycle.value],
            ["targets", knob.targets.value],
            ["values", knob.domain.describe()],
            ["default", "the engine's own choice" if knob.default is None else str(knob.default)],
            ["owner", registry.owner("knob", name)],
        ]
        lines = [f"# {name}", "", knob.summary, "", *table(["", ""], facts), "", "Scorers that know it:", ""]
        lines += table(["scorer", "lifecycle", "values", "note"], applied) if applied else ["none."]
        names.append(page(folder, f"knob-{name}", lines))
    return page(folder, "knobs", index("Knobs", "Every registered knob.", names))


def hooks(folder: Path) -> str:
    """One page a hook: signature and documentation."""
    from xcfg.plugin import hookspec

    names = []
    for name, function in inspect.getmembers(hookspec, inspect.isfunction):
        if not name.startswith("xcfg_"):
            continue
        signature = f"{name}{inspect.signature(function)}".replace("'", "")
        lines = [f"# {name}", "", "```python", signature, "```", "", inspect.getdoc(function) or ""]
        names.append(page(folder, f"hook-{name}", lines))
    intro = "Hook implementations are marked with `xcfg.plugin.hookimpl` in a distribution's `plugin.py`."
    return page(folder, "hooks", index("Hooks", intro, names))


def commands(folder: Path) -> str:
    """One page a command, written by sphinx-click."""
    from xcfg.cli.main import COMMANDS

    names = []
    for name, (target, summary) in COMMANDS.items():
        body = [f"# The command {name}", "", summary, "", "```{eval-rst}"]
        body += [f".. click:: {target}", f"   :prog: xcfg {name}", "   :nested: full", "```"]
        names.append(page(folder, f"command-{name}", body))
    return page(folder, "commands", index("Each command", "Options and arguments, from the code.", names))


def statuses(folder: Path) -> str:
    """Statuses with their exit codes."""
    from xcfg.exitcodes import ExitCode
    from xcfg.model.status import Status

    rows = [[f"`{item.value}`", "yes" if item.judged else "no", str(int(item.exit_code))] for item in Status]
    codes = [[str(int(code)), code.name.lower()] for code in ExitCode]
    lines = [
        "# Statuses and exit codes",
        "",
        "Only `pass` is a pass.",
        "",
        *table(["status", "judged", "exit code"], rows),
    ]
    return page(folder, "statuses", [*lines, "", "## Exit codes", "", *table(["code", "meaning"], codes)])


def metrics(folder: Path) -> str:
    """The metrics of a comparison."""
    from xcfg.comparator import drift
    from xcfg.model.result import METRIC_NAMES

    text = (inspect.getdoc(drift) or "").replace("\n", "\n\n")
    lines = [
        "# Metrics",
        "",
        "Over active tokens, in float64; `d` is train logprob minus rollout logprob, in nats.",
        "",
        text,
        "",
    ]
    return page(folder, "metrics", [*lines, *(f"- `{name}`" for name in METRIC_NAMES)])


def generate(app: Sphinx) -> None:
    """Write every generated page before Sphinx reads the sources."""
    folder = Path(app.srcdir) / GENERATED
    folder.mkdir(parents=True, exist_ok=True)
    for write in (commands, knobs, hooks, statuses, metrics):
        write(folder)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True}
