"""What the runner asks of the plugin registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from xcfg.model.case import SideConfig
from xcfg.model.scorer import KernelBackendDescriptor, MaterializerDescriptor, Role, ScorerDescriptor
from xcfg.model.tolerance import ToleranceContract
from xcfg.plugin.inventory import PluginInfo


class Lookup(Protocol):
    """The part of ``xcfg.plugin.registry.Registry`` that an execution needs."""

    def scorer(self, scorer: str, /) -> ScorerDescriptor:
        """The scorer of this id."""

    def materializers(self, scorer: str, /) -> Mapping[str, MaterializerDescriptor]:
        """How each knob is applied to a scorer."""

    def backend(self, operator: str, backend: str, /) -> KernelBackendDescriptor:
        """The kernel backend of this operator and id."""

    def owner(self, kind: str, name: str | tuple[str, str], /) -> str:
        """The distribution that registered a scorer, a materializer (knob, scorer) or a backend (operator, id)."""

    def contract(self, id_or_path: str, /, *, root: Path = ...) -> ToleranceContract:
        """The tolerance contract of this id or file; a relative path starts at ``root``."""

    def interpreter(self, role: Role, /) -> str:
        """The interpreter of a side's ranks; empty for this one."""

    @property
    def plugins(self) -> Sequence[PluginInfo]:
        """Every installed plugin with its state."""

    def process_environment(self, side: SideConfig, /) -> Mapping[str, str]:
        """What plugins set in the environment of a side's processes."""
