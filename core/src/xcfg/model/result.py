"""What one comparison found."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.json import Json, freeze, tupled
from xcfg.model.status import Status
from xcfg.model.tolerance import ContractRef

METRIC_FORMULAS: Mapping[str, str] = freeze(
    {
        "max_abs_dlogp": "max abs(d); decides the verdict",
        "mean_abs_dlogp": "mean abs(d)",
        "p95_abs_dlogp": "95th percentile of abs(d), interpolated linearly",
        "p99_abs_dlogp": "99th percentile of abs(d), interpolated linearly",
        "ratio0_min": "min r",
        "ratio0_mean": "mean r",
        "ratio0_max": "max r",
        "clipfrac0": "mean of 1[r < low or r > high]",
        "approx_kl0": "mean(expm1(d) - d)",
        "signed_mean_dlogp": "mean d",
        "std_dlogp": "sqrt(mean((d - mean d)^2))",
        "k1": "mean(-d), estimates KL(rollout || training)",
        "k1_reverse": "mean(d), the same with the sides swapped",
        "k3": "mean(r - 1 - d), estimates KL(rollout || training)",
        "k3_reverse": "mean(1/r - 1 + d), the same with the sides swapped",
        "token_mult_prob_error": "mean exp(abs(d))",
        "chi2_token": "mean(r^2) - 1",
        "ess": "(sum r)^2 / (n sum r^2), effective sample size as a fraction",
        "frac_unequal": "mean of 1[the two logprobs differ in a bit]",
        "frac_gt_ln2": "mean of 1[abs(d) > ln 2]",
        "sequence_max_abs_mean": "mean over sequences of max abs(d)",
        "sequence_mean_abs_max": "max over sequences of mean abs(d)",
        "sequence_sum_abs_max": "max over sequences of abs(sum d), the log ratio of a sequence",
        "sequence_sum_abs_mean": "mean over sequences of abs(sum d)",
        "corr_abs_position": "Pearson correlation of abs(d) with the position in the response",
        "corr_abs_logp": "Pearson correlation of abs(d) with the rollout logprob",
        "corr_abs_length": "Pearson correlation of abs(d) with the active tokens of the sequence",
    }
)
"""Formula of each metric over the n active tokens, d = train_logp - rollout_logp (nats) and r = exp(d)."""

METRIC_NAMES = tuple(METRIC_FORMULAS)
"""Every metric of a comparison, in reporting order; computed in :mod:`xcfg.comparator.drift`.

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

    def __bool__(self) -> bool:
        """Raise TypeError: ``if comparison`` would be true of a failure too."""
        raise TypeError("a Comparison is neither true nor false: ask for comparison.status, which is 'pass' or is not")
