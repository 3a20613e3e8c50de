"""What the planner asks of the registered plugins; the registry satisfies it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from xcfg.model.case import Case, Rejection
from xcfg.model.experiment import ProfileSpec, SliceSpec
from xcfg.model.knob import Knob
from xcfg.model.scorer import KernelBackendDescriptor, MaterializerDescriptor, ScorerDescriptor
from xcfg.model.tolerance import ToleranceContract


class Catalog(Protocol):
    """Descriptors by id. A lookup of an id nobody brings raises an XcfgError that says what to do."""

    def knobs(self) -> Mapping[str, Knob]:
        """Every knob by name."""

    def knob(self, name: str) -> Knob:
        """The knob of this name."""

    def scorer(self, scorer_id: str) -> ScorerDescriptor:
        """The scorer of this id."""

    def scorers(self) -> Mapping[str, ScorerDescriptor]:
        """Every scorer by id, fakes included."""

    def materializer(self, knob: str, scorer: str) -> MaterializerDescriptor | None:
        """How a knob is applied to a scorer; None where it is not."""

    def backend(self, operator: str, backend_id: str) -> KernelBackendDescriptor:
        """A kernel backend of an operator."""

    def profiles(self) -> Mapping[str, ProfileSpec]:
        """Every ablation profile by id."""

    def profile(self, profile_id: str, /) -> ProfileSpec:
        """The ablation profile of this id."""

    def slices(self) -> Mapping[str, SliceSpec]:
        """Every slice by id."""

    def slice(self, slice_id: str, /) -> SliceSpec:
        """The slice of this id."""

    def owner(self, kind: str, name: str) -> str:
        """The distribution that brings an id; ``kind`` is ``profile``, ``slice``, ``knob`` or ``scorer``."""

    def backends(self) -> Mapping[tuple[str, str], KernelBackendDescriptor]:
        """Every kernel backend by (operator, id), fakes included."""

    def contract(self, id_or_path: str, *, root: Path) -> ToleranceContract:
        """A tolerance contract by id, or read from a path that starts at ``root``."""

    def reject_case(self, case: Case, baseline: Case) -> Rejection | None:
        """The first veto of a plugin, None where there is none."""
