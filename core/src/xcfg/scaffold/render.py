"""The files of a new distribution, from the templates beside this module."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from string import Template

from packaging.version import Version

from xcfg.plugin.inventory import CORE
from xcfg.scaffold.names import Names

_TEMPLATES = Path(__file__).parent / "templates"
_EVERY = "every"
_SUFFIX = ".in"


def rendered(kind: str, names: Names) -> dict[Path, str]:
    """Text by path, relative to the distribution's folder, in order of path."""
    words = {
        "name": names.name,
        "distribution": names.distribution,
        "package": names.package,
        "prefix": names.prefix,
        "cls": names.cls,
        "needs": needed_core(),
    }
    return dict(sorted({**_below(_TEMPLATES / _EVERY, words), **_below(_TEMPLATES / kind, words)}.items()))


def needed_core() -> str:
    """The range of core that a distribution made today works with: from this minor version to the next one."""
    now = Version(version(CORE))
    return f"xcfg>={now.major}.{now.minor},<{now.major}.{now.minor + 1}"


def _below(folder: Path, words: Mapping[str, str]) -> dict[Path, str]:
    """A folder or file ``__package__`` of a template is named after the package."""
    found = {}
    for path in folder.rglob(f"*{_SUFFIX}"):
        place = path.relative_to(folder).with_suffix("").as_posix().replace("__package__", words["package"])
        found[Path(place)] = Template(path.read_text(encoding="utf-8")).substitute(words)
    return found
