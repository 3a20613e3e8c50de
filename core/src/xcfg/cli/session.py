"""What the global options said, handed to every command as ``ctx.obj``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from xcfg.model.scorer import Role
    from xcfg.plugin.inventory import PluginInfo
    from xcfg.plugin.registry import Registry
    from xcfg.plugin.trace import PluginTrace

EMPTY: Mapping[Role, str] = MappingProxyType({})


@frozen(kw_only=True)
class Session:
    """Global options."""

    verbose: bool = False
    quiet: bool = False
    color: bool | None = None
    disabled: tuple[str, ...] = ()
    plugins: bool = True

    def registry(self, *, allow_fake: bool = False, interpreters: Mapping[Role, str] = EMPTY) -> Registry:
        """Load the plugins that are not disabled. ``interpreters`` are those of sides whose ranks run elsewhere."""
        from xcfg.plugin.registry import load_registry

        return load_registry(
            disabled=self._disabled(), plugins=self.plugins, allow_fake=allow_fake, interpreters=interpreters
        )

    def inventory(self) -> tuple[PluginInfo, ...]:
        """Every installed plugin from its metadata alone."""
        from xcfg.plugin.inventory import inventory

        return inventory(disabled=self._disabled(), plugins=self.plugins)

    def trace(self) -> tuple[PluginTrace, ...]:
        """Load the plugins that are not disabled and take the time of each."""
        from xcfg.plugin.trace import trace_plugins

        return trace_plugins(disabled=self._disabled(), plugins=self.plugins)

    def _disabled(self) -> tuple[str, ...]:
        from xcfg.plugin.inventory import disabled_by_environment

        return (*self.disabled, *disabled_by_environment())
