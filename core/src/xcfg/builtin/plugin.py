"""Hook implementations of core's own plugin; it takes no way that another plugin could not take."""

from __future__ import annotations

from collections.abc import Sequence

from xcfg.builtin.contracts import shipped_contracts
from xcfg.builtin.executors import EXECUTORS
from xcfg.builtin.importers import FILE_FORMATS, IMPORTERS
from xcfg.builtin.knobs import KNOBS
from xcfg.builtin.profiles import PROFILES
from xcfg.model.executor import ExecutorDescriptor
from xcfg.model.importer import FileFormatDescriptor, ImporterDescriptor
from xcfg.model.knob import Knob
from xcfg.model.profile import ProfileDescriptor
from xcfg.model.tolerance import ToleranceContract
from xcfg.plugin.hookspec import hookimpl


@hookimpl
def xcfg_knobs() -> Sequence[Knob]:
    """The knobs under core's own prefixes."""
    return KNOBS


@hookimpl
def xcfg_profiles() -> Sequence[ProfileDescriptor]:
    """The ablation profiles A0 to A5."""
    return PROFILES


@hookimpl
def xcfg_tolerance_contracts() -> Sequence[ToleranceContract]:
    """The contracts shipped as package data."""
    return shipped_contracts()


@hookimpl
def xcfg_importers() -> Sequence[ImporterDescriptor]:
    """Importers of the frameworks' recorded logprobs."""
    return IMPORTERS


@hookimpl
def xcfg_file_formats() -> Sequence[FileFormatDescriptor]:
    """The containers core opens."""
    return FILE_FORMATS


@hookimpl
def xcfg_executors() -> Sequence[ExecutorDescriptor]:
    """The executor of this machine."""
    return EXECUTORS
