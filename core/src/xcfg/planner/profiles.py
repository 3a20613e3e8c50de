"""Profiles and slices by name: the experiment's own, and those that plugins bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from xcfg.errors import InvalidInput
from xcfg.model.codec import unknown
from xcfg.model.experiment import Experiment, ProfileSpec, SliceSpec
from xcfg.planner.catalog import Catalog

T = TypeVar("T", ProfileSpec, SliceSpec)


def find_profiles(experiment: Experiment, names: Sequence[str], catalog: Catalog) -> dict[str, ProfileSpec]:
    """The profiles of these names.

    Raises InvalidInput with the nearest name, PluginError where the plugin that would bring one is broken, disabled or
    clashes with another.
    """
    own, brought = experiment.profiles, catalog.profiles()
    return {name: _find("profile", name, own, brought, catalog.profile) for name in names}


def find_slice(experiment: Experiment, name: str, catalog: Catalog) -> SliceSpec | None:
    """The slice of this name, None for the empty name. Raises as :func:`find_profiles` does."""
    return _find("slice", name, experiment.slices, catalog.slices(), catalog.slice) if name else None


def _find(kind: str, name: str, own: Mapping[str, T], brought: Mapping[str, T], look_up: Callable[[str], T]) -> T:
    if name in own:
        return own[name]
    try:
        return look_up(name)
    except InvalidInput as error:
        known = [*brought, *own]
        hints = [f"there are {', '.join(known)}" if known else "there is none", error.faults[0].hint]
        hint = "; ".join(filter(None, hints))
        raise InvalidInput(unknown(kind, name, known), where=f"--{kind}", hint=hint) from error


def pairs_needed(passed: Mapping[str, bool]) -> bool:
    """Whether A4 is worth its engines: production fails, and the reference and every single class pass.

    ``passed`` is the verdict of the profiles that were judged. A reference that fails is to be debugged first, and a
    single class that fails explains production by itself.
    """
    return passed.get("A5") is False and all(passed.get(name) is True for name in ("A0", "A1", "A2", "A3"))
