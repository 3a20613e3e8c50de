"""What one comparison found."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from xcfg.model.json import Json, freeze
from xcfg.model.status import Status
from xcfg.model.tolerance import ContractRef


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
    """A statement with its evidence in numbers. ``source_class`` is one of the source taxonomy."""

    source_class: str
    subclass: str = ""
    rule: str = ""
    evidence: Mapping[str, Json] = field(factory=dict, converter=freeze)
    advice: str = ""
    confidence: str = "high"


@frozen(kw_only=True)
class Comparison:
    """The judged pair. ``metrics`` is empty unless at least one active token was finite and comparable."""

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
    per_rank: tuple[RankComparison, ...] = field(default=(), converter=tuple)
    findings: tuple[Finding, ...] = field(default=(), converter=tuple)
    assumed: tuple[str, ...] = field(default=(), converter=tuple)
