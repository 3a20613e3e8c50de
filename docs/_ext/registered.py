"""Writes the reference pages of knobs, hooks, metrics, statuses and exit codes from the installed code."""

from __future__ import annotations

import inspect
from pathlib import Path

from compatibility import compatibility
from pages import WRITTEN, index, page, table
from sphinx.application import Sphinx

GENERATED = "reference/generated"


def knobs(folder: Path) -> str:
    """One page a knob, with who can apply it."""
    from xcfg.model.knob import Lifecycle, Target
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
            [
                "aligning sets",
                ", ".join(f"{to} = {value}" for to, value in knob.aligned.items()) or "the other side's value",
            ],
            ["scope, intrusion, maintenance", f"{knob.semantic_scope}, {knob.intrusion}, {knob.maintenance}"],
            ["owner", registry.owner("knob", name)],
        ]
        lines = [f"# {name}", "", knob.summary, "", *table(["", ""], facts), ""]
        if knob.lifecycle is Lifecycle.BUILD and knob.targets is Target.KERNEL:
            lines += ["It chooses among the builds of a kernel: [](../../how-to/build-time-kernels.md)."]
            names.append(page(folder, f"knob-{name}", lines))
            continue
        lines += ["Scorers that know it:", ""]
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
    from xcfg.model.result import METRIC_FORMULAS

    intro = [
        "# Metrics",
        "",
        "Over the n active tokens, in float64: `d` is training minus rollout logprob in nats, `r = exp(d)`, and `low`",
        "and `high` bound the ratio interval of the contract or of the experiment's `clip_range`. A metric that is",
        "undefined (a correlation with something that does not vary) or beyond the float range is left out.",
        "",
    ]
    rows = [[f"`{name}`", f"`{formula}`"] for name, formula in METRIC_FORMULAS.items()]
    return page(folder, "metrics", [*intro, *table(["metric", "formula"], rows)])


def metric_names(folder: Path) -> None:
    """One table a framework, included by ``reference/metric-names.md``."""
    from xcfg.comparator.names import FRAMEWORKS

    headings = ["name", "formula", "ours", "where it differs", "source"]
    for framework, named in FRAMEWORKS.items():
        rows = [
            [
                f"`{metric.name}`",
                f"`{metric.formula}`",
                f"`{metric.ours}`" if metric.ours else "not among ours",
                metric.differs or ("the same" if metric.ours else ""),
                f"[source]({metric.source})",
            ]
            for metric in named
        ]
        page(folder, f"names-{framework}", table(headings, rows))


def importers(folder: Path) -> str:
    """Importers of recorded logprobs and the containers that are opened."""
    from xcfg.plugin.registry import load_registry

    registry = load_registry()
    rows = [
        [f"`{name}`", found.summary, found.note, "yes" if found.both_sides else "no", ", ".join(found.sources)]
        for name, found in registry.importers().items()
    ]
    formats = [
        [f"`{name}`", ", ".join(found.suffixes), found.summary, registry.owner("file_format", name)]
        for name, found in registry.file_formats().items()
    ]
    lines = ["# Importers of recorded logprobs", "", "`xcfg compare --format ID` reads:", ""]
    lines += table(["id", "layout", "note", "holds both sides", "source"], rows)
    lines += ["", "## File formats", "", *table(["id", "suffixes", "content", "opened by"], formats)]
    return page(folder, "importers", lines)


def generate(app: Sphinx) -> None:
    """Write every generated page before Sphinx reads the sources."""
    folder = Path(app.srcdir) / GENERATED
    folder.mkdir(parents=True, exist_ok=True)
    for write in (commands, knobs, hooks, statuses, metrics, metric_names, importers, compatibility):
        write(folder)
    for stale in folder.glob("*.md"):
        if stale.stem not in WRITTEN:
            stale.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True}
