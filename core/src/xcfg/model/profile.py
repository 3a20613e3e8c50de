"""Profiles and named slices that a distribution brings, as plain data."""

from __future__ import annotations

from attrs import frozen

from xcfg.model.experiment import ProfileSpec, SliceSpec


@frozen(kw_only=True)
class ProfileDescriptor:
    """A name for a selection of cases: exactly one of an ablation profile and a slice.

    A profile makes its own cases (``--profile ID``), a slice selects among an experiment's (``--slice ID``); a slice
    names no explicit case but the baseline, for those belong to one experiment.
    """

    id: str
    profile: ProfileSpec | None = None
    slice: SliceSpec | None = None
