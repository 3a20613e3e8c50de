"""What a new distribution may be called."""

from __future__ import annotations

import re
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

from attrs import frozen
from packaging.utils import canonicalize_name

from xcfg.errors import InvalidInput
from xcfg.model.knob import CORE_PREFIXES
from xcfg.plugin.inventory import CORE, inventory
from xcfg.plugin.known import own_plugins

KINDS = ("plugin", "kernel", "importer")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PREFIX = "xcfg-"
_LONGEST = 50


@frozen(kw_only=True)
class Names:
    """The spellings of one name: ``my-engine``, ``xcfg-my-engine``, ``xcfg_my_engine``, ``my_engine``, ``MyEngine``."""

    name: str

    @property
    def distribution(self) -> str:
        """What pip installs."""
        return f"{_PREFIX}{self.name}"

    @property
    def package(self) -> str:
        """What Python imports."""
        return self.distribution.replace("-", "_")

    @property
    def prefix(self) -> str:
        """What the plugin's knobs begin with."""
        return self.name.replace("-", "_")

    @property
    def cls(self) -> str:
        """The beginning of its classes' names."""
        return "".join(part.capitalize() for part in self.name.split("-"))


def new_names(name: str) -> Names:
    """The name of a distribution that can be made and installed here. Raises InvalidInput."""
    if name.startswith(_PREFIX):
        raise InvalidInput(f"{name!r} has the prefix already", where="NAME", hint=name.removeprefix(_PREFIX) or "NAME")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        hint = f"lower-case letters and digits in words joined by '-', at most {_LONGEST}: my-engine"
        raise InvalidInput(f"{name!r} cannot be the name of a plugin", where="NAME", hint=hint)
    another = "choose another name"
    if name in (*CORE_PREFIXES, *KINDS, CORE, "builtin", "testing"):
        raise InvalidInput(f"{name!r} is a word of xcfg itself", where="NAME", hint=another)
    if name in own_plugins():
        raise InvalidInput(f"{_PREFIX}{name} is a distribution of this project", where="NAME", hint=another)
    found = Names(name=name)
    _refuse_installed(found)
    return found


def _refuse_installed(names: Names) -> None:
    """What is installed under one of the names would hide the new one, or be hidden by it."""
    hint = "choose another name, or uninstall that one"
    installed = {canonicalize_name(found.name) for found in distributions() if "Name" in found.metadata}
    owners = [info.distribution for info in inventory() if canonicalize_name(info.name) == names.name]
    if names.distribution in installed or owners:
        other = owners[0] if owners else names.distribution
        raise InvalidInput(f"{other} is installed already and has this name", where="NAME", hint=hint)
    if (spec := find_spec(names.package)) is not None:
        place = Path(spec.origin).parent if spec.origin else "here"
        raise InvalidInput(f"Python finds a package {names.package} already, in {place}", where="NAME", hint=hint)
