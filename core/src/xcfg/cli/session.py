"""What the global options said, handed to every command as ``ctx.obj``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from xcfg.plugin.registry import Registry


@frozen(kw_only=True)
class Session:
    """Global options."""

    verbose: bool = False
    quiet: bool = False
    color: bool | None = None
    disabled: tuple[str, ...] = ()
    plugins: bool = True

    def registry(self, *, allow_fake: bool = False) -> Registry:
        """Load the plugins that are not disabled."""
        from xcfg.plugin.inventory import disabled_by_environment
        from xcfg.plugin.registry import load_registry

        disabled = (*self.disabled, *disabled_by_environment())
        return load_registry(disabled=disabled, plugins=self.plugins, allow_fake=allow_fake)
