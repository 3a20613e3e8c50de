"""What one comparison found."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.json import Json, freeze, tupled
from xcfg.model.status import Status
from xcfg.model.tolerance import ContractRef

METRIC_NAMES = (
    "max_abs_dlogp",
    "mean_abs_dlogp",
    "p95_abs_dlogp",
    "p99_abs_dlogp",
    "ratio0_min",
    "ratio0_mean",
    "ratio0_max",
    "clipfrac0",
    "approx_kl0",
    "signed_mean_dlogp",
    "std_dlogp",
    "k1",
    "k1_reverse",
    "k3",
    "k3_reverse",
    "token_mult_prob_error",
    "chi2_token",
    "ess",
    "frac_unequal",
    "frac_gt_ln2",
    "sequence_max_abs_mean",
    "sequence_mean_abs_max",
    "sequence_sum_abs_max",
    "sequence_sum_abs_mean",
    "corr_abs_position",
    "corr_abs_logp",
    "corr_abs_length",
)
"""Every metric of a comparison, in reporting order; formulas in :mod:`xcfg.comparator.drift`.

A metric that is undefined (a correlation against a constant) or beyond the float range is absent from a mapping.
"""


@frozen(kw_only=True)
class WorstToken:
    """The active token of largest abs(d). ``position`` counts from 0 in the response."""

    sequence: str
    position: int
    token: int
    rollout_logp: float
    train_logp: float
    rollout_rank: int
    train_rank: int


@frozen(kw_only=True)
class RankComparison:
    """The metrics over the active tokens of one (rollout rank, training rank) pair."""

    rollout_rank: int
    train_rank: int
    active_tokens: int
    metrics: Mapping[str, float] = field(factory=dict, converter=freeze)
    rollout: Mapping[str, Json] = field(factory=dict, converter=freeze)
    training: Mapping[str, Json] = field(factory=dict, converter=freeze)


@frozen(kw_only=True)
class Finding:
    """A statement with its evidence in numbers.

    ``source_class`` is one of the source taxonomy, or ``unresolved`` or ``none`` (:mod:`xcfg.analyzer.taxonomy`).
    """

    source_class: str
    subclass: str = ""
    rule: str = ""
    evidence: Mapping[str, Json] = field(factory=dict, converter=freeze)
    advice: str = ""
    confidence: str = "high"


@frozen(kw_only=True)
class Comparison:
    """The judged pair.

    ``metrics`` (names in ``METRIC_NAMES``) is empty unless every active token was comparable and finite: numbers over
    the remaining tokens would read as agreement. ``limits`` are the rows of the contract for ``dtype`` by metric name;
    only that of ``max_abs_dlogp``, repeated as ``threshold``, decides. ``clip_interval`` bounds the ratio of
    ``clipfrac0``. ``assumed`` names fields that neither side states.
    """

    status: Status
    reason: str = ""
    dtype: str = ""
    threshold: float | None = None
    within_baseline_row: bool | None = None
    baseline_dtype: str = ""
    contract: ContractRef
    active_tokens: int = 0
    metrics: Mapping[str, float] = field(factory=dict, converter=freeze)
    worst: WorstToken | None = None
    per_rank: tuple[RankComparison, ...] = field(default=(), converter=tupled)
    findings: tuple[Finding, ...] = field(default=(), converter=tupled)
    assumed: tuple[str, ...] = field(default=(), converter=tupled)
    limits: Mapping[str, float] = field(factory=dict, converter=freeze)
    clip_interval: tuple[float, float] | None = None
