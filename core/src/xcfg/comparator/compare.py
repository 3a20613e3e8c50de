"""One case judged: comparability first, then the numbers of the active tokens."""

from __future__ import annotations

from attrs import evolve

from xcfg.comparator.artifact import alias_defects, artifact_defects
from xcfg.comparator.blocks import TokenPairs
from xcfg.comparator.defect import Defect, named
from xcfg.comparator.frozen import FrozenTokens, frozen_defects
from xcfg.comparator.identity import CHECKPOINT, declared_kin, identity_defects, positions_known, token_defects
from xcfg.comparator.judging import judged
from xcfg.comparator.pairing import RowPairs, ordered_ids, row_pairs, side_rows
from xcfg.comparator.provenance import provenance_defects
from xcfg.comparator.ranks import rank_comparisons, replica_findings, worst_pairs
from xcfg.comparator.tolerance import dtype_findings, judging_row, row
from xcfg.comparator.values import value_defects
from xcfg.model.attempt import SideResult
from xcfg.model.outcome import PairedTokens
from xcfg.model.result import Comparison
from xcfg.model.status import Status
from xcfg.model.tolerance import ToleranceContract

Judged = tuple[Comparison, PairedTokens | None]


def compare(
    rollout: SideResult,
    training: SideResult,
    contract: ToleranceContract,
    *,
    baseline_dtype: str = "",
    clip_range: tuple[float, float] | None = None,
    frozen: FrozenTokens | None = None,
) -> Judged:
    """Judge ``training`` against ``rollout`` under ``contract``; never raises for what a side recorded.

    ``baseline_dtype`` names the row of ``within_baseline_row`` (the judging dtype of the baseline case; empty: not
    asked). ``clip_range`` (low, high) replaces the contract's ratio interval of ``clipfrac0``. ``frozen`` is the batch
    both sides were given: each must have scored its tokens under its masks. The tokens returned are those that were
    judged, on the worst replica of each sequence; None where the pair is not comparable or nothing is active.
    """
    judging = judging_row(rollout, training, contract)
    base = Comparison(
        status=Status.INVALID_ARTIFACT,
        dtype=judging.dtype,
        threshold=judging.threshold,
        limits=judging.limits,
        baseline_dtype=baseline_dtype,
        clip_interval=clip_range or contract.clip_interval,
        contract=contract.ref,
        findings=(*dtype_findings("rollout", rollout.ranks), *dtype_findings("training", training.ranks)),
    )
    broken = [
        *alias_defects(rollout, training),
        *artifact_defects("rollout", rollout),
        *artifact_defects("training", training),
        *provenance_defects("rollout", rollout),
        *provenance_defects("training", training),
        *identity_defects(rollout, training),
    ]
    if frozen is not None:
        broken += [*frozen_defects("rollout", rollout, frozen), *frozen_defects("training", training, frozen)]
    if broken:
        return _invalid(base, broken), None
    return _pair(rollout, training, contract, base, frozen)


def _invalid(base: Comparison, defects: list[Defect]) -> Comparison:
    defect = named(defects)
    return evolve(base, status=defect.status, reason=defect.reason)


def _pair(
    rollout: SideResult,
    training: SideResult,
    contract: ToleranceContract,
    base: Comparison,
    frozen: FrozenTokens | None,
) -> Judged:
    ids = ordered_ids(rollout.sequence_ids)
    left, right = (side_rows(side.samples, side.sequence_ids, ids) for side in (rollout, training))
    given = None if frozen is None else side_rows(frozen.samples, frozen.ids, ids)
    if mismatches := token_defects(ids, left, right, given):
        return _invalid(base, mismatches), None
    known = positions_known(rollout.samples)
    findings = (*base.findings, *replica_findings(ids, "rollout", left), *replica_findings(ids, "training", right))
    unproven = {CHECKPOINT: declared_kin(rollout.identity, training.identity), "position_ids": not known}
    assumed = [name for name, holds in unproven.items() if holds]
    base = evolve(base, assumed=assumed, findings=findings)
    pairs = row_pairs(ids, left, right)
    tokens = pairs.tokens(worst_pairs(pairs))
    base = evolve(base, active_tokens=len(tokens.token))
    if not base.active_tokens:
        return evolve(base, status=Status.ZERO_ACTIVE_TOKENS, reason=_nothing(ids, rollout)), None
    if wrong := [*value_defects(ids, "rollout", left), *value_defects(ids, "training", right)]:
        return _invalid(base, wrong), tokens
    return _judge(rollout, training, contract, base, pairs, tokens), tokens


def _nothing(ids: tuple[str, ...], rollout: SideResult) -> str:
    return f"none of {int(rollout.samples.response_length.sum())} response tokens in {len(ids)} sequences is active"


def _judge(
    rollout: SideResult,
    training: SideResult,
    contract: ToleranceContract,
    base: Comparison,
    pairs: RowPairs,
    tokens: PairedTokens,
) -> Comparison:
    interval = base.clip_interval or contract.clip_interval
    baseline = row(base.baseline_dtype, contract) if base.baseline_dtype else None
    comparison = judged(base, TokenPairs(tokens), judging_row(rollout, training, contract), interval, baseline)
    return evolve(comparison, per_rank=rank_comparisons(pairs, rollout, training, interval, comparison.metrics))
