"""Hook specifications, grouped by the phase in which they are called."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pluggy

from xcfg.model.case import Case, Rejection, SideConfig
from xcfg.model.executor import ExecutorDescriptor
from xcfg.model.importer import FileFormatDescriptor, ImporterDescriptor
from xcfg.model.json import Json
from xcfg.model.knob import Knob
from xcfg.model.plan import Plan
from xcfg.model.profile import ProfileDescriptor
from xcfg.model.result import Comparison
from xcfg.model.scorer import KernelBackendDescriptor, MaterializerDescriptor, ScorerDescriptor
from xcfg.model.tolerance import ToleranceContract

PROJECT = "xcfg"
API_VERSION = "1.0"
"""Version of this hook interface. Additive changes raise the minor number."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


# register: called once, when a plugin's descriptors are first needed


@hookspec
def xcfg_knobs() -> Sequence[Knob]:
    """Knobs this distribution owns. Names outside core's prefixes start with the plugin's short name."""


@hookspec
def xcfg_scorers() -> Sequence[ScorerDescriptor]:
    """Scorers, each with the import string of its engine code."""


@hookspec
def xcfg_materializers() -> Sequence[MaterializerDescriptor]:
    """How knobs are applied to scorers, keyed by (knob, scorer)."""


@hookspec
def xcfg_kernel_backends() -> Sequence[KernelBackendDescriptor]:
    """Kernel backends, keyed by (operator, id)."""


@hookspec
def xcfg_profiles() -> Sequence[ProfileDescriptor]:
    """Ablation profiles, chosen by id (``xcfg plan --profile ID``), and named slices (``--slice ID``).

    A profile names the source classes whose knobs keep their production values, never knobs, so that a knob another
    plugin adds is in the profiles of its class. A slice selects cases by the baseline, axes or source classes. An id
    belongs to one distribution, and an experiment's own profiles and slices take other names. Core brings A0 to A5
    through this hook. Example::

        ProfileDescriptor(id="E1", profile=ProfileSpec(summary="Execution alone", differ=[[SourceClass.EXECUTION]]))
        ProfileDescriptor(id="topology", slice=SliceSpec(baseline=True, source_classes=["reduction"]))
    """


@hookspec
def xcfg_tolerance_contracts() -> Sequence[ToleranceContract]:
    """Tolerance contracts, chosen by id."""


@hookspec
def xcfg_importers() -> Sequence[ImporterDescriptor]:
    """Importers of recorded logprobs, chosen by id (``xcfg compare --format ID``)."""


@hookspec
def xcfg_file_formats() -> Sequence[FileFormatDescriptor]:
    """How recorded files of some suffixes are opened. A suffix belongs to one file format."""


@hookspec
def xcfg_executors() -> Sequence[ExecutorDescriptor]:
    """Executors, chosen by id (``xcfg run --executor ID``): where the processes of a launch run.

    The object behind an id follows :class:`xcfg.plugin.executor.Executor`. Core brings ``local``.
    """


# plan: called for each generated case


@hookspec
def xcfg_reject_case(case: Case, baseline: Case) -> Rejection | None:
    """A veto on one case, with its reason; None to let it pass."""


# prepare: called before a side run is launched


@hookspec
def xcfg_process_environment(side: SideConfig) -> Mapping[str, str]:
    """Environment variables of the side's process. Two plugins that disagree on one variable are an error."""


# child: called in the child process once the engine is open


@hookspec
def xcfg_environment_facts(role: str) -> Mapping[str, Json]:
    """JSON facts about the environment, recorded beside the results; never decide anything."""


# observe: return values are ignored; an observer that fails is recorded and changes no result


@hookspec
def xcfg_plan_built(plan: Plan) -> None:
    """A plan was expanded and validated."""


@hookspec
def xcfg_case_started(case: Case) -> None:
    """Both sides of a case are about to be judged."""


@hookspec
def xcfg_case_finished(case: Case, comparison: Comparison) -> None:
    """A case was judged."""


@hookspec
def xcfg_cube_committed(path: str) -> None:
    """The cube at ``path`` was committed."""
