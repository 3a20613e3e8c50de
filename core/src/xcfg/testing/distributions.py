"""Small installed-looking distributions for tests of discovery, without running an installer."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path


def write_distribution(
    folder: Path,
    name: str,
    source: str,
    *,
    version: str = "1.0",
    requires: Sequence[str] = ("xcfg>=0.1",),
    entry: str = "",
    module: str = "",
    commands: Sequence[str] = (),
) -> str:
    """Write a ``.dist-info`` folder and a plugin module into ``folder``, which then goes on ``sys.path``.

    ``source`` is the module's text. ``entry`` defaults to the name without ``xcfg-``, ``module`` to the name with
    underscores and ``_plugin``. ``commands`` are names of click commands in the module. Returns the module's name.
    """
    entry = entry or name.removeprefix("xcfg-")
    module = module or f"{name.replace('-', '_')}_plugin"
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {line}" for line in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
    points = ["[xcfg]", f"{entry} = {module}"]
    points += ["[xcfg.commands]", *(f"{command} = {module}:{command}" for command in commands)] if commands else []
    (info / "entry_points.txt").write_text("\n".join(points) + "\n", encoding="utf-8")
    (folder / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
    return module
