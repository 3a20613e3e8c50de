"""What a page tells the reader to make with ``xcfg init``, installed as it is written."""

from __future__ import annotations

from pathlib import Path

from xcfg.scaffold.names import Names
from xcfg.scaffold.render import rendered
from xcfg.testing.distributions import write_distribution

from .snippets import ROOT

KERNEL = ROOT / "docs/how-to/write-a-kernel.md"


def install_kernel(folder: Path) -> None:
    """The kernel ``my-kernel``, into ``folder``."""
    names = Names(name="my-kernel")
    write_distribution(folder, names.distribution, "", module=f"{names.package}.plugin")
    for path, text in rendered("kernel", names).items():
        if path.parts[0] == "src":
            target = folder / path.relative_to("src")
            target.parent.mkdir(exist_ok=True)
            target.write_text(text)
