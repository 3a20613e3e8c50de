"""Requested, materialized and observed value of each knob, over all ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xcfg.model.case import SideConfig
from xcfg.model.ids import canonical
from xcfg.model.json import Json, thaw
from xcfg.model.kernel import OPERATOR_OF_KNOB, BoundKernel
from xcfg.model.provenance import KnobProvenance, KnobState, SideProvenance
from xcfg.runner.rank_record import KnobReading, RankRecord


def side_provenance(config: SideConfig, records: Sequence[RankRecord]) -> SideProvenance:
    """Provenance of one side run: of the knobs it was asked for, and of those that the ranks read besides.

    An operator is judged like a knob named ``operators.NAME``, which is left out where a knob says the same of it.
    """
    names = dict.fromkeys([*config.knobs, *(name for item in records for name in item.knobs)])
    knobs = {
        name: knob_provenance(config.knobs.get(name), {item.rank: item.knobs.get(name) for item in records})
        for name in names
    }
    for name, reason in config.inapplicable.items():
        knobs[name] = KnobProvenance(state=KnobState.INAPPLICABLE, reason=reason)
    operators: dict[str, BoundKernel] = {}
    for name, choice in config.operators.items():
        bound = {item.rank: item.operators.get(name) for item in records}
        judged = _operator(choice.backend, bound)
        covered = any(knob in config.knobs for knob, operator in OPERATOR_OF_KNOB.items() if operator == name)
        if not covered or not judged.sound:
            knobs[f"operators.{name}"] = judged
        if (first := bound[records[0].rank]) is not None:
            operators[name] = first
    return SideProvenance(knobs=knobs, operators=operators)


def knob_provenance(requested: Json, readings: Mapping[int, KnobReading | None]) -> KnobProvenance:
    """Judge the readings of all ranks. ``requested`` None leaves the value to the engine: what is observed holds."""
    known = {rank: item for rank, item in readings.items() if item is not None}
    if len(known) < len(readings):
        return _unobservable(requested, None, f"not reported by {_ranks(readings.keys() - known.keys())}")
    materialized, one_materialized = _one({rank: item.materialized for rank, item in known.items()})
    blind = {rank: item.unobservable for rank, item in known.items() if item.unobservable}
    if blind:
        return _unobservable(requested, materialized, next(iter(blind.values())))
    observed, one_observed = _one({rank: item.observed for rank, item in known.items()})
    if not one_observed or not one_materialized:
        reason = "the ranks do not agree"
    elif requested is None and materialized is None:
        return KnobProvenance(materialized=observed, observed=observed, state=KnobState.APPLIED)
    elif requested is not None and not _same(requested, materialized):
        reason = f"requested {requested}, materialized {materialized}"
    elif not _same(materialized, observed):
        reason = f"materialized {materialized}, observed {observed}"
    else:
        reason = ""
    return KnobProvenance(
        requested=requested,
        materialized=materialized,
        observed=observed,
        state=KnobState.MISMATCH if reason else KnobState.APPLIED,
        reason=reason,
    )


def _operator(backend: str, bound: Mapping[int, BoundKernel | None]) -> KnobProvenance:
    found = knob_provenance(
        backend,
        {
            rank: None if item is None else KnobReading(materialized=backend, observed=item.backend)
            for rank, item in bound.items()
        },
    )
    if found.state is not KnobState.APPLIED or len(set(bound.values())) == 1:
        return found
    concrete = {str(rank): item.concrete for rank, item in bound.items() if item is not None}
    reason = f"the ranks bound different implementations: {concrete}"
    return KnobProvenance(
        requested=backend, materialized=backend, observed=concrete, state=KnobState.MISMATCH, reason=reason
    )


def _unobservable(requested: Json, materialized: Json, reason: str) -> KnobProvenance:
    return KnobProvenance(requested=requested, materialized=materialized, state=KnobState.UNOBSERVABLE, reason=reason)


def _one(values: Mapping[int, Json]) -> tuple[Json, bool]:
    """The value all ranks share, or the value of each by rank."""
    first = next(iter(values.values()))
    if all(_same(first, value) for value in values.values()):
        return first, True
    return {str(rank): thaw(value) for rank, value in values.items()}, False


def _same(one: Json, two: Json) -> bool:
    """Equal as JSON: 1 and 1.0 are one number, True and 1 are not."""
    return canonical(one) == canonical(two)


def _ranks(ranks: set[int]) -> str:
    return "rank " + ", ".join(str(rank) for rank in sorted(ranks))
