"""Every plugin's descriptors as one JSON document, so that one interpreter can read what another one has.

``python -m xcfg.plugin.describe`` prints it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from attrs import field, frozen

from xcfg.errors import InvalidInput
from xcfg.exitcodes import ExitCode
from xcfg.model.codec import dump_json, load_json, structure
from xcfg.model.json import freeze, tupled
from xcfg.plugin.hookspec import API_VERSION
from xcfg.plugin.inventory import disabled_by_environment
from xcfg.plugin.manager import LoadedPlugin
from xcfg.plugin.registry import Registry, load_registry

SCHEMA = "xcfg.describe/1"


@frozen(kw_only=True)
class Description:
    """Descriptors by plugin, and the failures by distribution that loading them gave."""

    schema: str = SCHEMA
    hook_api: str = API_VERSION
    plugins: tuple[LoadedPlugin, ...] = field(converter=tupled)
    failures: Mapping[str, str] = field(factory=dict, converter=freeze)


def describe(registry: Registry) -> Description:
    """What the plugins of this interpreter registered."""
    return Description(plugins=registry.loaded, failures=registry.failures)


def read_description(text: str | bytes, *, where: str = "") -> Description:
    """The description in a JSON text. Raises InvalidInput where it is not one or has another schema."""
    read = structure(load_json(text, where=where), Description)
    if read.schema != SCHEMA:
        raise InvalidInput(f"schema {read.schema!r} is not {SCHEMA!r}", where=where)
    return read


def described_registry(description: Description, *, allow_fake: bool = False) -> Registry:
    """A registry of the described descriptors; its plugins' hooks of later phases are not there to be called."""
    return Registry(description.plugins, allow_fake=allow_fake)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the description of this interpreter's plugins on standard output."""
    parser = argparse.ArgumentParser(prog="python -m xcfg.plugin.describe", description=main.__doc__)
    parser.add_argument("--disable", action="append", default=[], metavar="NAME", help="leave a plugin out")
    parser.add_argument("--no-plugins", action="store_true", help="core's own plugins only")
    options = parser.parse_args(arguments)
    disabled = (*options.disable, *disabled_by_environment())
    registry = load_registry(disabled=disabled, plugins=not options.no_plugins)
    sys.stdout.write(dump_json(describe(registry)) + "\n")
    return ExitCode.PASS


if __name__ == "__main__":
    sys.exit(main())
